/* SPDX-License-Identifier: MIT */
#pragma once

/* The records in inboxes and outboxes. Each has a table of its fields (fields.h), from which these
 * are made:
 *
 *   struct protocol_NAME
 *   int protocol_put_NAME(void *body, uint32_t size, const struct protocol_NAME *record);
 *       Writes it. Returns the number of bytes, or -EMSGSIZE: too little room, or a field above its
 *       limit.
 *   int protocol_get_NAME(const void *body, uint32_t size, struct protocol_NAME *ret);
 *       Reads it. Returns 0, or -EBADMSG: missing, surplus or impossible fields; `*ret` is all zero
 *       then. Byte pointers are borrowed from the record. An untrusted peer may change these bytes
 *       at any time: copy them before looking.
 *
 *   worker → supervisor    READY, STARTED, CHECKPOINT, EMITTED, CRASHED, RESULT
 *   supervisor → worker    JOB, STOP
 *   client → supervisor    LOOKUP, SUBMIT, CANCEL, WAIT, WITHDRAW
 *   supervisor → client    FOUND, ACCEPTED, REFUSED, DONE
 *
 * To change a record: raise MEMORY_VERSION (shared/ring/memory.h) and change its table. The tests
 * follow the table. */

#include "shared/base/clock.h"
#include "shared/protocol/fields.h"
#include "shared/protocol/job-id.h"
#include "shared/protocol/payload-wire.h"
#include "shared/protocol/traceparent.h"
#include <stdbool.h>
#include <stdint.h>

enum protocol_kind {
    PROTOCOL_READY = 1,
    PROTOCOL_STARTED,
    PROTOCOL_RESULT,
    PROTOCOL_CRASHED,
    PROTOCOL_EMITTED,
    PROTOCOL_CHECKPOINT,
    PROTOCOL_JOB = 16,
    PROTOCOL_STOP,
    PROTOCOL_LOOKUP = 32,
    PROTOCOL_SUBMIT,
    PROTOCOL_CANCEL,
    PROTOCOL_WAIT,
    PROTOCOL_WITHDRAW,
    PROTOCOL_FOUND = 48,
    PROTOCOL_ACCEPTED,
    PROTOCOL_REFUSED,
    PROTOCOL_DONE,
};

/* The outcome of one attempt. */
enum protocol_outcome {
    PROTOCOL_SUCCESS = 0,
    PROTOCOL_REJECT = 1,    /* final */
    PROTOCOL_RETRY = 2,     /* retried under the job's policy */
    PROTOCOL_CANCELLED = 3, /* the handler honoured the cancel flag */
};

/* How a job ended. */
enum protocol_end {
    PROTOCOL_END_SUCCEEDED = 0,
    PROTOCOL_END_REJECTED = 1, /* by the worker: final */
    PROTOCOL_END_CANCELLED = 2,
    PROTOCOL_END_DEAD = 3,
};

/* Why a job was cancelled, or is dead. The values are also stored. */
enum protocol_cause {
    PROTOCOL_CAUSE_NONE = 0,
    PROTOCOL_CAUSE_REQUESTED = 1,    /* cancelled: on request */
    PROTOCOL_CAUSE_WITHDRAWN = 2,    /* cancelled: on request, because no worker had it */
    PROTOCOL_CAUSE_DEADLINE = 3,     /* cancelled: its deadline is over */
    PROTOCOL_CAUSE_GROUP = 4,        /* cancelled: its group or the supervisor stops */
    PROTOCOL_CAUSE_ATTEMPTS = 5,     /* dead: they are used up */
    PROTOCOL_CAUSE_PAYLOAD_LOST = 6, /* dead: no other attempt is possible */
    PROTOCOL_CAUSE_DEPENDENCY = 7, /* cancelled: a job that it waited for did not end as it must */
};

/* Returns the name that clients see; static. */
const char *protocol_cause_name(enum protocol_cause cause);

/* What happens to a job whose unique key another live job holds. */
enum protocol_conflict {
    PROTOCOL_CONFLICT_DEFAULT = 0,  /* as the group's OnConflict= says */
    PROTOCOL_CONFLICT_EXISTING = 1, /* the other job takes its place */
    PROTOCOL_CONFLICT_REJECT = 2,   /* it is refused */
    PROTOCOL_CONFLICT_REPLACE = 3,  /* it takes the place of a job that waits */
    PROTOCOL_CONFLICT_REQUEUE = 4,  /* it runs once more after the running one */
};

#define PROTOCOL_KEY_MAX     255
#define PROTOCOL_REASON_MAX  1024
#define PROTOCOL_COMMAND_MAX 255 /* a program and its arguments, cut to this */
#define PROTOCOL_SIGNAL_MAX  64
/* Bytes of a checkpoint. See protocol_checkpoint_max(). */
#define PROTOCOL_CHECKPOINT_MAX (64u << 10)
#define PROTOCOL_ITEM_MAX       4096 /* bytes of an item that a job emits */

/* Ids of jobs that another one waits for, separated by commas. */
#define PROTOCOL_AFTER_MAX ((size_t)64 * (PROTOCOL_NAME_MAX + 1))

/* For which end of those it waits. */
enum protocol_condition {
    PROTOCOL_CONDITION_SUCCESS = 0,
    PROTOCOL_CONDITION_FAILURE = 1, /* any other */
    PROTOCOL_CONDITION_END = 2,
};

/* READY and STOP have no fields. No body is larger than this, without its inline payload, its
 * checkpoint, ids of jobs that it waits for and `rare`. */
#define PROTOCOL_BODY_MAX 2048u

/* What few jobs have: the bytes of `rare` in JOB. */
#define PROTOCOL_FIELDS_job_rare(F)                                                                \
    F(bytes, parents, PROTOCOL_AFTER_MAX) /* jobs that it has waited for, if there is room */      \
    F(bytes, traceparent, TRACEPARENT_SIZE + 1) /* the attempt's span, and NUL; size 0 = none */
PROTOCOL_RECORD(job_rare)
enum {
    PROTOCOL_JOB_RARE_MAX = PROTOCOL_ROOM(job_rare)
};

#define PROTOCOL_FIELDS_job(F)                                                                     \
    F(u64, handle) /* names the job on this channel, also in STARTED and RESULT */                 \
    F(u32, attempt)                                                                                \
    F(u32, max_attempts) /* 1 + retries */                                                         \
    F(usec, timeout)     /* for this attempt; USEC_INFINITY = none */                              \
    F(id, id)                                                                                      \
    F(bytes, key, PROTOCOL_KEY_MAX)                                                                \
    F(bytes, checkpoint, PROTOCOL_CHECKPOINT_MAX) /* the last one; size 0 = none */                \
    F(bytes, rare, PROTOCOL_JOB_RARE_MAX)         /* size 0 = nothing of it */                     \
    F(payload, payload)
PROTOCOL_RECORD(job)

/* The largest checkpoint of a worker with such rings: a JOB must have room for it beside a payload.
 */
static inline uint32_t protocol_checkpoint_max(uint32_t ring_size, uint32_t inline_max)
{
    const uint32_t most = ring_size / 2 - inline_max - 1024;

    return most < PROTOCOL_CHECKPOINT_MAX ? most : PROTOCOL_CHECKPOINT_MAX;
}

#define PROTOCOL_FIELDS_started(F)                                                                 \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(u32, state_sequence) /* of the state page when it began: the contents are older */
PROTOCOL_RECORD(started)

#define PROTOCOL_FIELDS_result(F)                                                                  \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(enumeration, outcome, enum protocol_outcome, PROTOCOL_CANCELLED)                             \
    F(i32, code)        /* the handler's own; the submitter knows its meaning */                   \
    F(usec, pause)      /* with RETRY: before the next attempt; 0 = the job's policy decides */    \
    F(payload, payload) /* the result, or the text of an error */
PROTOCOL_RECORD(result)

/* An item for the clients that watch the job. */
#define PROTOCOL_FIELDS_emitted(F)                                                                 \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(payload, payload) /* inline, at most PROTOCOL_ITEM_MAX */
PROTOCOL_RECORD(emitted)

/* Bytes from which the next attempt is to continue, if there is one. */
#define PROTOCOL_FIELDS_checkpoint(F)                                                              \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(bytes, data, PROTOCOL_CHECKPOINT_MAX)
PROTOCOL_RECORD(checkpoint)

/* A process that the worker ran for its job was killed by a signal; RESULT follows. */
#define PROTOCOL_FIELDS_crashed(F)                                                                 \
    F(u64, handle)                                                                                 \
    F(u32, attempt)                                                                                \
    F(process_id, pid)                                                                             \
    F(signal_number, signal)                                                                       \
    F(enumeration, core_dumped, bool, true)                                                        \
    F(usec, uptime)                                                                                \
    F(usec, user)                                                                                  \
    F(usec, system)                                                                                \
    F(u64, max_rss) /* bytes */                                                                    \
    F(bytes, command, PROTOCOL_COMMAND_MAX)
PROTOCOL_RECORD(crashed)

/* A cookie is the client's own number for a request, and comes back in the answer. */
#define PROTOCOL_FIELDS_lookup(F)                                                                  \
    F(u64, cookie)                                                                                 \
    F(bytes, name, PROTOCOL_KEY_MAX)
PROTOCOL_RECORD(lookup)

#define PROTOCOL_FIELDS_found(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(u64, group) /* reference for SUBMIT; ends with the group, never reused */
PROTOCOL_RECORD(found)

/* Options left to the group's configuration. USEC_INFINITY as a time-out: none. */
#define PROTOCOL_DEFAULT_RETRIES  UINT32_MAX
#define PROTOCOL_DEFAULT_USEC     0
#define PROTOCOL_DEFAULT_PRIORITY UINT8_MAX

enum protocol_submit_flags {
    PROTOCOL_SUBMIT_DO = 1u << 0, /* answer with DONE, not with ACCEPTED; the result is not kept */
    PROTOCOL_SUBMIT_KEEP = 1u << 1, /* with DO: the result is also kept */
    PROTOCOL_SUBMIT_KNOWN = ((1u << 2) - 1),
};

/* What few jobs ask for: the bytes of `rare` in SUBMIT. */
#define PROTOCOL_FIELDS_submit_rare(F)                                                             \
    F(usec, delay)                     /* earliest start, from now; 0 = none */                    \
    F(usec, at)                        /* earliest start, realtime; 0 = none */                    \
    F(bytes, unique, PROTOCOL_KEY_MAX) /* unique key; size 0 = none */                             \
    F(enumeration, on_conflict, enum protocol_conflict, PROTOCOL_CONFLICT_REQUEUE)                 \
    F(usec, debounce)                   /* with a unique key; 0 = not */                           \
    F(usec, debounce_max)               /* 0 = no limit */                                         \
    F(bytes, after, PROTOCOL_AFTER_MAX) /* it waits for these; size 0 = none */                    \
    F(enumeration, condition, enum protocol_condition, PROTOCOL_CONDITION_END)                     \
    F(bytes, batch, PROTOCOL_NAME_MAX) /* of which it becomes a member; size 0 = none */           \
    F(bytes, tags, PROTOCOL_TAGS_MAX)                                                              \
    F(bytes, traceparent, TRACEPARENT_SIZE) /* the submitter's span; size 0 = none */
PROTOCOL_RECORD(submit_rare)
enum {
    PROTOCOL_RARE_MAX = PROTOCOL_ROOM(submit_rare)
};

#define PROTOCOL_FIELDS_submit(F)                                                                  \
    F(u64, cookie)                                                                                 \
    F(u64, group)                                                                                  \
    F(flags, flags, PROTOCOL_SUBMIT_KNOWN)                                                         \
    F(u32, max_retries)                                                                            \
    F(usec, timeout)                                                                               \
    F(usec, backoff_min)                                                                           \
    F(usec, backoff_max)                                                                           \
    F(u8, priority)   /* 0 first … 63, or PROTOCOL_DEFAULT_PRIORITY */                           \
    F(u8, cost)       /* units of limits; 0 = 1 */                                                 \
    F(usec, wait)     /* for room in the queue; USEC_INFINITY = no limit */                        \
    F(usec, deadline) /* from now until the end of the job; 0 = none */                            \
    F(bytes, name,                                                                                 \
      PROTOCOL_NAME_MAX) /* id chosen by the submitter; size 0 = the supervisor makes one */       \
    F(bytes, key, PROTOCOL_KEY_MAX)                                                                \
    F(bytes, rare, PROTOCOL_RARE_MAX) /* size 0 = nothing of it */                                 \
    F(payload, payload)
PROTOCOL_RECORD(submit)

/* CANCEL is answered with ACCEPTED or REFUSED, as is WITHDRAW, which cancels a job only while no
 * worker has it. WAIT is answered with DONE or REFUSED. */
#define PROTOCOL_FIELDS_by_id(F)                                                                   \
    F(u64, cookie)                                                                                 \
    F(id, id)
PROTOCOL_RECORD(by_id)

#define PROTOCOL_FIELDS_accepted(F)                                                                \
    F(u64, cookie)                                                                                 \
    F(id, id)                                                                                      \
    F(enumeration, existing, bool, true) /* of the job that has held the unique key before */
PROTOCOL_RECORD(accepted)

#define PROTOCOL_FIELDS_refused(F)                                                                 \
    F(u64, cookie)                                                                                 \
    F(u32, error) /* errno: EBUSY queue full, ENOENT no group, ESRCH no job, ENOSPC no cell … */ \
    F(id, holder) /* ENOTUNIQ: the job that has the unique key; else all zero */                   \
    F(bytes, reason, PROTOCOL_REASON_MAX)
PROTOCOL_RECORD(refused)

#define PROTOCOL_FIELDS_done(F)                                                                    \
    F(u64, cookie)                                                                                 \
    F(id, id)                                                                                      \
    F(enumeration, end, enum protocol_end, PROTOCOL_END_DEAD)                                      \
    F(enumeration, cause, enum protocol_cause, PROTOCOL_CAUSE_DEPENDENCY)                          \
    F(i32, code)                                                                                   \
    F(u32, attempts)                                                                               \
    F(bytes, reason, PROTOCOL_REASON_MAX) /* why it failed, was cancelled or died; text */         \
    F(payload, payload)                   /* the result */
PROTOCOL_RECORD(done)
