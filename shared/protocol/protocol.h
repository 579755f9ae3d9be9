/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The records that travel through inboxes and outboxes. Each has a struct, a table of its fields
 * (fields.h), and of these:
 *
 *   int protocol_put_KIND(void *body, uint32_t size, const struct protocol_KIND *record);
 *       Writes it. Bytes written, or -EMSGSIZE: too little room, or a field above its limit.
 *   int protocol_get_KIND(const void *body, uint32_t size, struct protocol_KIND *ret);
 *       Reads it. 0, or -EBADMSG: missing, surplus or impossible fields; `*ret` is all zero then.
 *       Byte pointers are borrowed from the record. A peer that is not trusted may change these
 *       bytes at any time: copy, then look.
 *
 *   worker → supervisor    READY, STARTED, CRASHED, RESULT
 *   supervisor → worker    JOB, STOP
 *   client → supervisor    LOOKUP, SUBMIT, CANCEL, WAIT
 *   supervisor → client    FOUND, ACCEPTED, REFUSED, DONE
 *
 * Steps for changing a record: raise MEMORY_VERSION (shared/ring/memory.h); change its struct and
 * its table. The tests follow the table.
 */

#include "shared/base/clock.h"
#include "shared/protocol/job-id.h"
#include "shared/protocol/payload.h"
#include <stdbool.h>
#include <stdint.h>

enum protocol_kind {
    PROTOCOL_READY = 1,
    PROTOCOL_STARTED,
    PROTOCOL_RESULT,
    PROTOCOL_CRASHED,
    PROTOCOL_JOB = 16,
    PROTOCOL_STOP,
    PROTOCOL_LOOKUP = 32,
    PROTOCOL_SUBMIT,
    PROTOCOL_CANCEL,
    PROTOCOL_WAIT,
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
    PROTOCOL_END_DEAD = 3,      /* retries exhausted */
    PROTOCOL_END_TIMED_OUT = 4, /* cancelled at its deadline */
};

#define PROTOCOL_KEY_MAX     255
#define PROTOCOL_REASON_MAX  1024
#define PROTOCOL_COMMAND_MAX 255 /* a program and its arguments, cut to this */
#define PROTOCOL_SIGNAL_MAX  64

struct protocol_job {
    uint64_t handle; /* names the job on this channel; comes back in STARTED and RESULT */
    uint32_t attempt;
    uint32_t max_attempts; /* 1 + retries */
    usec_t timeout;        /* for this attempt; USEC_INFINITY = none */
    struct protocol_id id;
    const void *key;
    uint32_t key_size;
    struct payload_wire payload;
};

struct protocol_started {
    uint64_t handle;
    uint32_t attempt;
    uint32_t state_sequence; /* of the state page then: what is there belongs to earlier work */
};

struct protocol_result {
    uint64_t handle;
    uint32_t attempt;
    enum protocol_outcome outcome;
    int32_t code;                /* the handler's own; meaning is between it and the asker */
    struct payload_wire payload; /* result, or for an error its text */
};

/* A process that the worker ran for the job in hand was killed by a signal; RESULT follows. */
struct protocol_crashed {
    uint64_t handle;
    uint32_t attempt;
    int32_t pid;
    uint8_t signal; /* 1 … PROTOCOL_SIGNAL_MAX */
    bool core_dumped;
    usec_t uptime, user, system;
    uint64_t max_rss; /* bytes */
    const void *command;
    uint32_t command_size;
};

struct protocol_lookup {
    uint64_t cookie; /* the client's own number; comes back in the answer */
    const void *name;
    uint32_t name_size;
};

struct protocol_found {
    uint64_t cookie;
    uint64_t group; /* reference for SUBMIT; dies with the group, never names another */
};

/* Options left to the group's configuration. USEC_INFINITY as a time-out: none. */
#define PROTOCOL_DEFAULT_RETRIES  UINT32_MAX
#define PROTOCOL_DEFAULT_USEC     0
#define PROTOCOL_DEFAULT_PRIORITY UINT8_MAX

enum protocol_submit_flags {
    PROTOCOL_SUBMIT_DO = 1u << 0, /* answer with DONE, not with ACCEPTED; the result is not kept */
    PROTOCOL_SUBMIT_KNOWN = ((1u << 1) - 1),
};

struct protocol_submit {
    uint64_t cookie;
    uint64_t group;
    uint32_t flags;
    uint32_t max_retries;
    usec_t timeout;
    usec_t backoff_min, backoff_max;
    uint8_t priority; /* 0 first … 63, or PROTOCOL_DEFAULT_PRIORITY */
    usec_t delay;     /* not to be begun before so long; 0 = none */
    usec_t at;        /* not to be begun before this date, realtime; 0 = none */
    usec_t wait;      /* how long to wait for room in the queue; USEC_INFINITY = for ever */
    usec_t deadline;  /* for all of it; 0 = none */
    const void *name; /* the submitter's id; size 0 = have one made */
    uint32_t name_size;
    const void *key;
    uint32_t key_size;
    struct payload_wire payload;
};

/* CANCEL is answered with ACCEPTED or REFUSED, WAIT with DONE or REFUSED. */
struct protocol_by_id {
    uint64_t cookie;
    struct protocol_id id;
};

struct protocol_accepted {
    uint64_t cookie;
    struct protocol_id id;
};

struct protocol_refused {
    uint64_t cookie;
    uint32_t error; /* errno: EBUSY queue full, ENOENT no group, ESRCH no job, ENOSPC no cell … */
    const void *reason;
    uint32_t reason_size;
};

struct protocol_done {
    uint64_t cookie;
    struct protocol_id id;
    enum protocol_end end;
    int32_t code;
    uint32_t attempts;
    const void *reason; /* why it failed, was cancelled or died; text */
    uint32_t reason_size;
    struct payload_wire payload; /* the result */
};

/* READY and STOP have no fields. Bodies never exceed this beside their inline payload. */
#define PROTOCOL_BODY_MAX 2048u

/* Declares put and get. */
#define PROTOCOL_DECLARE(name)                                                                     \
    int protocol_put_##name(void *body, uint32_t size, const struct protocol_##name *record);      \
    int protocol_get_##name(const void *body, uint32_t size, struct protocol_##name *ret);

#define PROTOCOL_JOB_RECORDS(R)                                                                    \
    R(job)                                                                                         \
    R(started)                                                                                     \
    R(result)                                                                                      \
    R(crashed)                                                                                     \
    R(lookup)                                                                                      \
    R(found)                                                                                       \
    R(submit)                                                                                      \
    R(by_id)                                                                                       \
    R(accepted)                                                                                    \
    R(refused)                                                                                     \
    R(done)

PROTOCOL_JOB_RECORDS(PROTOCOL_DECLARE)
