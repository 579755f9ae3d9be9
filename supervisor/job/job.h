/* SPDX-License-Identifier: MIT */
#pragma once

/* Jobs, and the table of all jobs. A job is in exactly one state; job_set_state() checks the
 * transitions, and ends are final. A job is freed when it has ended, its result is no longer kept,
 * and there is no reference. */

#include "shared/base/clock.h"
#include "shared/base/handle-table.h"
#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "supervisor/channel/payload.h"
#include "supervisor/event/death.h"
#include "supervisor/job/job-options-check.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cell;
struct group;
struct kept_results;
struct slot;

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_BACKOFF, /* between two attempts */
    JOB_DELAYED, /* before its start time */
    JOB_SUCCEEDED,
    JOB_REJECTED, /* by the worker: final */
    JOB_CANCELLED,
    JOB_DEAD,
    _JOB_N_STATES,
};

/* An attempt that did not end the job. */
struct job_attempt {
    uint32_t number;
    char worker[DEATH_WORKER_MAX];
    usec_t at;      /* realtime */
    char cause[24]; /* death cause, "retry" */
    char detail[160];
};

struct job;

/* Notified of every change of a job. Belongs to its owner; unlinked before the last call. */
struct job_waiter {
    struct list link;       /* in the job */
    struct list owner_link; /* for the owner */
    /* Called after each change of state. After the last one, job_ended() is true and the waiter is
     * unlinked. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    struct job *job;
    void *owner;
    uint64_t cookie;
};

struct job {
    struct list blob_link; /* in its share's list of blobs that can be spared */
    struct list link;      /* in the cell's queue, the slot's hand, the cell's backoff list, or the
                              group's kept results */
    uint64_t handle;       /* index and generation in the table */
    struct protocol_id id;
    enum job_state state;
    uid_t submitter_uid; /* of the submitting process; 0 = root, or none */
    bool keep_result;    /* created in the background */
    bool cancel_requested;
    bool timed_out;       /* cancelled at its deadline */
    bool canceller_known; /* cancelled by a client: `canceller` */
    uid_t canceller;
    bool started;      /* the worker said so, this attempt */
    const char *crash; /* why a process that this attempt ran died; static; NULL = none */
    bool put_off;      /* has a start time */
    uint8_t n_unbegun; /* workers in a row that died before beginning it */
    unsigned references;
    uint32_t state_sequence; /* of its worker's state page when it was started */
    uint8_t priority;        /* 0 first … QUEUE_PRIORITIES - 1 */
    uint32_t attempt;        /* 0 until the first assignment */
    uint32_t max_retries;    /* attempts after the first */
    uint32_t n_failed;       /* attempts that were used up */
    usec_t timeout;          /* per attempt; USEC_INFINITY = none */
    usec_t backoff_min, backoff_max;
    struct job_options asked;                /* what the five above come from */
    usec_t created_at, started_at, ended_at; /* realtime; 0 = not yet; started: this attempt */
    usec_t kept_at;                          /* monotonic: since when its result is kept */
    struct alarm alarm;                      /* ends backoff or delay */
    struct timer deadline;                   /* ends the job in any state */
    struct group *group;                     /* NULL once it has ended and its result is not kept */
    struct cell *cell;                       /* while live: it may be gone afterwards */
    struct slot *slot;                       /* while running */
    struct kept_results *kept;               /* while the result is kept */
    char *key;
    uint32_t key_size;
    int32_t code;
    char *reason; /* NULL = none */
    struct job_attempt *attempts;
    size_t n_attempts; /* the last JOB_ATTEMPTS_KEPT ones */
    struct list waiters;
    struct job_waiter submitter; /* saves an allocation for the usual single waiter */
    struct payload payload; /* from here on, memory is not cleared as a whole when it is reused */
    struct payload result;
};

#define JOB_ATTEMPTS_KEPT 8

struct job_table {
    struct handle_table handles;
    struct list unused; /* memory of former jobs, kept for the next ones */
    void *names;        /* tree of jobs whose id was chosen by the submitter */
    uint64_t n_live;
    struct blob_quota blobs; /* of payloads, results and messages alike */
    uint64_t random_high;    /* makes ids */
    uint64_t random_state;
};

enum {
    _JOB_E_SUCCESS,
    JOB_E_EXISTS, /* a live or kept job has that id */
};

/* 0 or -errno of getrandom(2). */
int job_table_init(struct job_table *table);
void job_table_deinit(struct job_table *table);

/* Makes a queued job, in no list, with one reference. Its id is `name`, which must be valid
 * (protocol_name_valid()), or is made if that is empty. Returns 0, JOB_E_EXISTS or -ENOMEM. */
int job_new(struct job_table *table, const char *name, struct job **ret);
struct job *job_ref(struct job *job);
/* Frees the job with its last reference: it must have ended and be in no list. */
void job_unref(struct job_table *table, struct job *job);

/* Return NULL if there is no such job, or not any more. */
static inline struct job *job_by_handle(const struct job_table *table, uint64_t handle)
{
    return handle_table_get(&table->handles, handle);
}
struct job *job_by_id(const struct job_table *table, const struct protocol_id *id);

/* Asserts that the transition is allowed. Does not notify the waiters. */
void job_set_state(struct job *job, enum job_state state);
static inline bool job_ended(const struct job *job)
{
    return job->state >= JOB_SUCCEEDED;
}
/* Returns the name that clients see; static. */
const char *job_state_to_string(enum job_state state);

/* Keeps a failed attempt; drops the oldest beyond JOB_ATTEMPTS_KEPT. Best effort. */
void job_note_attempt(struct job *job, const char *worker, const char *cause, const char *detail);

/* Replaces the reason (copied; out of memory leaves none). */
void job_set_reason(struct job *job, const char *reason);

void job_add_waiter(struct job *job, struct job_waiter *waiter);
void job_remove_waiter(struct job_waiter *waiter);
/* Notifies all waiters; when the job has ended, each is unlinked before its call. */
void job_tell_waiters(struct job *job);
