/* SPDX-License-Identifier: MIT */
#pragma once

/* Jobs, and the table of all jobs. A job is in exactly one state; job_set_state() checks the
 * transitions, and ends are final. A job is freed when it has ended, its result is no longer kept,
 * and there is no reference. */

#include "shared/base/clock.h"
#include "shared/base/handle-table.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/protocol/job-options.h"
#include "shared/protocol/protocol.h"
#include "supervisor/channel/payload.h"
#include "supervisor/event/death.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct cell;
struct config_group;
struct group;
struct history_row;
struct job_stream;
struct job_ties;
struct job_ties_handler;
struct kept_result;
struct slot;
struct submitter;

enum job_state {
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_BACKOFF, /* between two attempts */
    JOB_DELAYED, /* before its start time */
    JOB_SUCCEEDED,
    JOB_REJECTED, /* by the worker: final */
    JOB_CANCELLED,
    JOB_DEAD,
    JOB_PENDING, /* until other jobs have ended: job-ties.h. Last, as the ends are stored */
    _JOB_N_STATES,
};

/* An attempt that did not end the job. Kept across an upgrade: JOB_ATTEMPT_RECORD. */
struct job_attempt {
    uint32_t number;
    char worker[DEATH_WORKER_MAX];
    usec_t at;      /* realtime */
    char cause[24]; /* death cause, "retry" */
    char detail[160];
};

/* The wait of a job that was delayed or has backed off. */
struct job_pause {
    struct alarm alarm; /* ends it */
    struct job *job;
};

/* When the job ends in any state. */
struct job_deadline {
    struct timer timer;
    struct job *job;
};

/* The state of a durable job's row in the database: store/durable-job.h. */
struct job_record {
    struct index_entry by_id;
    struct job *job;
};

/* A unique key as it is stored: a digest of the group and the key. Both 0 = none. */
struct unique_id {
    uint64_t high, low;
};

/* Facts that only few jobs have. */
struct job_rare {
    struct index_entry by_unique; /* in job_table.unique, while `listed`: see job-unique.c */
    struct job *job;
    struct job_attempt *attempts;  /* job.n_attempts of them; NULL = none so far */
    struct checkpoint *checkpoint; /* NULL = none */
    struct job_stream *stream;     /* what it has emitted; NULL = nothing, and no client watches */
    struct job_ties *ties;         /* to other jobs; NULL = none */
    struct unique_id unique;       /* job-unique.h */
    char *tags;                    /* words with blanks; NULL = none */
    char *traceparent;             /* the submitter's span; NULL = none */
    struct history_row *past;      /* what History= keeps of it, once it ends; NULL = nothing */
    struct job *replaces;          /* with a reference: it is cancelled once this job is on disk */
    struct job *replaced_by;       /* is being written: this job may not begin; NULL = none */
    /* The job replaces earlier ones: when the first of them came, by clock_steady(); 0 = it is not
     * debounced. */
    usec_t debounced;
    uint32_t ties_bytes; /* of edges, while they count as the job's */
    bool listed;
    bool holds;   /* the key; otherwise it waits until the holder has ended */
    uint8_t role; /* private to job-unique.c */
};

/* A million jobs may wait: what only few of them have is allocated when they need it. */
struct job {
    struct list link; /* in the cell's queue, the slot's hand, the cell's backoff list, or the
                         group's kept results */
    uint64_t handle;  /* index and generation in the table */
    uint64_t id_high, id_low;
    char *name; /* the chosen id; NULL = the id was made from `id_high` and `id_low` */
    JOB_FACTS_MEMBERS
    enum job_state state : 8;
    uint8_t n_attempts;    /* the last JOB_ATTEMPTS_KEPT ones */
    uint8_t refusal;       /* CELL_E_*: it was not accepted after all; 0 = accepted */
    uint8_t hand;          /* while in hand: its entry in the worker's inbox */
    uint8_t cost;          /* units that it takes of limits; 0 = 1 */
    uint8_t key_size;      /* at most PROTOCOL_KEY_MAX */
    bool payload_lost : 1; /* with the last supervisor: no other attempt is possible */
    bool parked : 1;       /* queued, and the cell's backlog has its number */
    bool aside : 1;        /* queued, but a gate holds it: in the cell's list `aside` */
    bool in_line : 1;      /* queued, but a limit of its key holds it: in a line */
    bool returned : 1;     /* in the queue again, after a line */
    bool limited : 1;      /* it is counted by its key: see limits_begin() */
    bool uncounted : 1;    /* its key's line does not: there was no memory */
    bool id_is_free : 1;   /* another job may have `name` */
    bool unkept : 1;       /* its result could not be written, and is not kept; see `reason` */
    bool forgotten : 1;    /* its result is not kept only because memory is short */
    unsigned references;
    uint32_t charged;              /* bytes at its submitter; at most UINT32_MAX */
    struct group *group;           /* NULL once it has ended and its result is not kept */
    struct cell *cell;             /* while live: it may be gone afterwards */
    struct slot *slot;             /* while running */
    char *key;                     /* NULL = none */
    char *reason;                  /* NULL = none */
    struct job_pause *pause;       /* NULL = none so far */
    struct job_deadline *deadline; /* NULL = none so far */
    struct job_rare *rare;         /* NULL = none so far */
    struct job_record *record;     /* of a durable job; NULL = it is not durable */
    struct kept_result *kept;      /* while the result is kept */
    struct submitter *submitter;   /* that counts it; NULL = none, or it has ended */
    struct list waiters;           /* struct job_waiter.link */
    /* From here on, memory is not cleared as a whole when it is reused. */
    union {
        struct payload payload;
        struct payload result; /* takes the place of the payload when a worker has ended the job */
    };
};

#define JOB_ATTEMPTS_KEPT 8

static inline unsigned job_cost(const struct job *job)
{
    return job->cost > 0 ? job->cost : 1;
}

static inline struct checkpoint *job_checkpoint(const struct job *job)
{
    return job->rare ? job->rare->checkpoint : NULL;
}

static inline struct job_stream *job_own_stream(const struct job *job)
{
    return job->rare ? job->rare->stream : NULL;
}

extern const struct record JOB_ATTEMPT_RECORD;

/* See job-ties.h. */
struct job_ties_table {
    struct index by_key;   /* struct job_fate.by_key */
    struct list all;       /* struct job_fate.link: of jobs in memory, or that have ended */
    struct list unclaimed; /* the others: their jobs are still to be restored */
    struct list due;       /* struct job_fate.due: something is to be decided */
    const struct job_ties_handler *handler;
    void *userdata; /* the handler's */
    struct loop_deferred decide;
};

struct job_table {
    struct handle_table handles;
    struct list unused; /* memory of former jobs, kept for the next ones */
    struct list unused_waiters;
    unsigned n_unused_waiters;
    struct loop *loop;   /* tells waiters and frees memory in turns; NULL = always all at once */
    struct list telling; /* ended jobs with waiters that are not yet told */
    struct loop_deferred tell;
    uint64_t most_live;   /* since memory was last given back */
    uint64_t freed;       /* bytes since `n_live` was that */
    void *names;          /* tree of jobs whose id was chosen by the submitter */
    struct index durable; /* struct job_record.by_id, of jobs whose id was not chosen */
    struct index unique;  /* struct job_rare.by_unique */
    struct job_ties_table ties;
    /* Frees the record of a durable job that is freed. */
    void (*free_record)(struct job *job);
    uint64_t n_live;
    struct heap_node *discarded; /* the first one, linked by its parent; NULL = none */
    struct loop_deferred discard;
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

/* Empties the heap, and frees its nodes in later turns, with what each is the first member of. */
void job_table_discard(struct job_table *table, struct heap *heap);

/* Makes a queued job, in no list, with one reference. Its id is `name`, which must be valid
 * (protocol_name_valid()), or is made if that is empty. Returns 0, JOB_E_EXISTS (`*ret` is the job
 * that has the id) or -ENOMEM. */
int job_new(struct job_table *table, const char *name, struct job **ret);
/*
 * Makes a job that the last supervisor had under this handle and id, before any other job is made.
 * Then handle_table_link_free() is due. Returns 0, JOB_E_EXISTS, -EEXIST, or another -errno.
 */
int job_restore(struct job_table *table, uint64_t handle, const struct protocol_id *id,
                struct job **ret);
struct job *job_ref(struct job *job);
/* Frees the job with its last reference: it must have ended and be in no list. */
void job_unref(struct job_table *table, struct job *job);
/* Drops the reference of its group: the job has ended, and nothing of it is kept. Its chosen id is
 * free, even if clients are still to be sent the end. */
void job_let_go(struct job_table *table, struct job *job);

/* Replaces the id that the table has made by one that outlives the process, and takes note of the
 * record. A chosen id stays. */
void job_set_record(struct job_table *table, struct job *job, struct job_record *record,
                    const struct protocol_id *id);
/* The job is not durable any more. The caller owns the record. */
void job_drop_record(struct job_table *table, struct job *job);

/* Return NULL if there is no such job, or not any more. */
struct job *job_by_id(const struct job_table *table, const struct protocol_id *id);
static inline struct job *job_by_handle(const struct job_table *table, uint64_t handle)
{
    return handle_table_get(&table->handles, handle);
}

/* Inline: every record about a job has its id. */
static inline void job_get_id(const struct job *job, struct protocol_id *ret)
{
    ret->high = job->id_high;
    ret->low = job->id_low;
    ret->name[0] = '\0';
    if (job->name)
        memcpy(ret->name, job->name, strlen(job->name) + 1);
}
/* Writes the id, NUL-terminated, into `text` of PROTOCOL_ID_TEXT bytes. Returns `text`. */
char *job_format_id(const struct job *job, char *text);

/* Asserts that the transition is allowed. Does not notify the waiters. */
void job_set_state(struct job *job, enum job_state state);
/* Whether it waits for a worker, for its time, or for other jobs. */
static inline bool job_waits(enum job_state state)
{
    return state == JOB_QUEUED || state == JOB_BACKOFF || state == JOB_DELAYED ||
           state == JOB_PENDING;
}
static inline bool job_state_is_end(enum job_state state)
{
    return (unsigned)state - JOB_SUCCEEDED <= JOB_DEAD - JOB_SUCCEEDED;
}
static inline bool job_ended(const struct job *job)
{
    return job_state_is_end(job->state);
}
/* Returns the name that clients see; static. */
const char *job_state_to_string(enum job_state state);
/* Whether it is to be cancelled, or was. */
static inline bool job_cancel_requested(const struct job *job)
{
    return job->cause != PROTOCOL_CAUSE_NONE && job->cause <= PROTOCOL_CAUSE_DEADLINE;
}

/* Keeps a failed attempt; drops the oldest beyond JOB_ATTEMPTS_KEPT. Best effort, but for the
 * cause: "retry", "supervisor", or a death cause. */
void job_note_attempt(struct job *job, const char *worker, const char *cause, const char *detail);
/* Puts attempts that the last supervisor has seen fail before those of this one. Best effort. */
void job_restore_attempts(struct job *job, const struct job_attempt *attempts, unsigned n);
#define JOB_UNKEPT_MAX 128
/* Writes into `ret` why the job's result is not kept: because of `error`, -errno, or if that is 0,
 * because of ResultsMemoryMax=. Returns `ret`. */
const char *job_unkept_reason(const struct job *job, int error, char ret[JOB_UNKEPT_MAX]);
/* Replaces the reason (copied; out of memory leaves none). */
void job_set_reason(struct job *job, const char *reason);

/* Takes a checkpoint over, NULL = none, in place of the former one. Returns 0; or -ENOMEM, only of
 * a job without job_make_rare(): the checkpoint is dropped. */
int job_set_checkpoint(struct job *job, struct checkpoint *checkpoint);
/* Inline: asked for each job that ends. */
static inline void job_drop_checkpoint(struct job *job)
{
    if (job_checkpoint(job))
        (void)job_set_checkpoint(job, NULL);
}
/* Returns how many bytes of payload, checkpoint and ties the job keeps in memory. */
static inline uint64_t job_bytes(const struct job *job)
{
    const struct checkpoint *checkpoint = job_checkpoint(job);

    return job->payload.size + (checkpoint ? checkpoint->size : 0) +
           (job->rare ? job->rare->ties_bytes : 0);
}

/* Sets the options: each is the submitter's, or the group's where PROTOCOL_DEFAULT_* stands. */
void job_set_options(struct job *job, const struct job_options *asked,
                     const struct config_group *config);
/* As if the submitter had chosen the priority. */
void job_set_priority(struct job *job, uint8_t priority);
/* Returns those that the submitter chose. */
struct job_options job_asked(const struct job *job);

/* An option that is out of bounds, by its Varlink name, and the permitted values. Both static. */
struct job_options_problem {
    const char *option, *allowed;
};
/* Returns the first problem, or NULL. */
const struct job_options_problem *job_options_check(const struct job_options *options);

/* Copy the tags and the traceparent to a job that has none; size 0 = none, as is an invalid
 * traceparent: the file may be damaged. Return 0 or -ENOMEM. */
int job_set_tags(struct job *job, const char *tags, size_t size);
int job_set_traceparent(struct job *job, const char *text, size_t size);
static inline const char *job_traceparent(const struct job *job)
{
    return job->rare ? job->rare->traceparent : NULL;
}
/* Writes the span of the present attempt, which begins a trace of its own unless it is the first;
 * only for a job with a traceparent. Every supervisor computes the same span, as it follows from
 * the job's id, time and attempt. */
void job_attempt_traceparent(const struct job *job, char ret[TRACEPARENT_SIZE + 1]);

static inline bool job_has_deadline(const struct job *job)
{
    return job->deadline && timer_armed(&job->deadline->timer);
}

/* Make a member of the job, unless it exists. Return 0 or -ENOMEM. */
int job_make_pause(struct job *job);
int job_make_deadline(struct job *job);
int job_make_rare(struct job *job);
/* Copies the routing key to a job that has none. Returns 0, -ENOMEM, or -EMSGSIZE above
 * PROTOCOL_KEY_MAX. */
int job_set_key(struct job *job, const void *key, size_t size);
