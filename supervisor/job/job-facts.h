/* SPDX-License-Identifier: MIT */
#pragma once

/* The facts of a job beside its texts, its bytes and its future dates. It outlives the
 * supervisor as a whole: in the row of the database, in that of an upgrade, and for a job in hand
 * in the inbox of its worker. */

#include "shared/base/clock.h"
#include "shared/protocol/job-id.h"
#include "shared/protocol/protocol.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record;

#define JOB_NOBODY ((uid_t)-1)

/* No bit-fields: tables need addresses. Each comes into JOB_FACTS_FIELDS, below. */
#define JOB_FACTS                                                                                  \
    usec_t created_at, started_at, ended_at; /* realtime; 0 = not yet; started: this attempt */    \
    usec_t timeout;                          /* per attempt; USEC_INFINITY = none */               \
    usec_t backoff_min, backoff_max;                                                               \
    uid_t submitter_uid;     /* of the submitting process; 0 = root, or none */                    \
    uid_t canceller;         /* JOB_NOBODY = not known, or none */                                 \
    uint32_t state_sequence; /* of its worker's state page when it was started */                  \
    uint32_t attempt;        /* 0 until the first assignment */                                    \
    uint32_t max_retries;    /* attempts after the first */                                        \
    uint32_t n_failed;       /* attempts that were used up */                                      \
    int32_t code;                                                                                  \
    uint8_t priority;  /* 0 first … QUEUE_PRIORITIES - 1 */                                      \
    uint8_t cause;     /* enum protocol_cause: why it is to be cancelled, or has ended */          \
    uint8_t failed_by; /* enum attempt_cause: of the last attempt that failed */                   \
    uint8_t crash;     /* enum death_cause: with `crashed` */                                      \
    uint8_t n_unbegun; /* workers in a row that died before beginning it */                        \
    uint8_t chosen;    /* which options the submitter chose: bits of job-options.c */              \
    bool started;      /* the worker said so, this attempt */                                      \
    bool keep_result;  /* created in the background */                                             \
    bool put_off;      /* has a start time */                                                      \
    bool moved;        /* from another group, where it ran out of memory: OnOom= */                \
    bool crashed;      /* a process that this attempt ran died: `crash` */                         \
    bool progressed;   /* this attempt has made a checkpoint */

struct job_facts {
    JOB_FACTS
};

/* The members as such, and as a whole: `facts`. */
#define JOB_FACTS_MEMBERS                                                                          \
    union {                                                                                        \
        struct job_facts facts;                                                                    \
        struct {                                                                                   \
            JOB_FACTS                                                                              \
        };                                                                                         \
    };

/* The columns of a live job's row come from here too. */
#define JOB_FACTS_FIELDS(F)                                                                        \
    F(ALL, created, NUMBER(created_at))                                                            \
    F(ALL, started, OPTIONAL(started_at, 0))                                                       \
    F(KEPT, ended, NUMBER(ended_at))                                                               \
    F(KEPT, timeout, NUMBER(timeout))                                                              \
    F(KEPT, backoff_min, NUMBER(backoff_min))                                                      \
    F(KEPT, backoff_max, NUMBER(backoff_max))                                                      \
    F(ALL, uid, NUMBER(submitter_uid))                                                             \
    F(ALL, canceller, OPTIONAL(canceller, JOB_NOBODY))                                             \
    F(KEPT, state_sequence, NUMBER(state_sequence))                                                \
    F(ALL, attempt, NUMBER(attempt))                                                               \
    F(ALL, max_retries, NUMBER(max_retries))                                                       \
    F(ALL, failed, NUMBER(n_failed))                                                               \
    F(KEPT, code, NUMBER(code))                                                                    \
    F(ALL, priority, BELOW(priority, QUEUE_PRIORITIES - 1))                                        \
    F(ALL, cancel, BELOW(cause, PROTOCOL_CAUSE_DEPENDENCY))                                        \
    F(ALL, cause, OPTIONAL(failed_by, ATTEMPT_CAUSE_NONE))                                         \
    F(KEPT, crash, BELOW(crash, _DEATH_N_CAUSES - 1))                                              \
    F(KEPT, unbegun, NUMBER(n_unbegun))                                                            \
    F(KEPT, chosen, NUMBER(chosen))                                                                \
    F(KEPT, begun, NUMBER(started))                                                                \
    F(ALL, keep, NUMBER(keep_result))                                                              \
    F(KEPT, put_off, NUMBER(put_off))                                                              \
    F(ALL, moved, OPTIONAL(moved, 0))                                                              \
    F(ALL, progressed, OPTIONAL(progressed, 0))                                                    \
    F(KEPT, crashed, NUMBER(crashed))

extern const struct record JOB_FACTS_RECORD;

/* A job in hand, in struct memory_job.kept: complete at whatever instruction the supervisor ends.
 */
struct job_page {
    JOB_FACTS_MEMBERS
    uint64_t handle;                  /* that names it on the worker's channel */
    int64_t number;                   /* of a durable job; 0 = it is not durable */
    usec_t deadline;                  /* clock_steady(); 0 = none */
    uint64_t unique_high, unique_low; /* struct unique_id */
    usec_t limit; /* when the worker's time for it is over: monotonic; 0 = it has not begun */
    struct protocol_id id;
    uint32_t key_size;
    uint8_t cost; /* of struct job */
    char key[PROTOCOL_KEY_MAX];
};

extern const struct record JOB_PAGE_RECORD;
