/* SPDX-License-Identifier: MIT */
#pragma once

/* Submission of a job to a cell, and waiting for room in its queue. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct job_waiter;

/* The jobs that a new job waits for, and the batch that it joins. */
struct tie_request {
    struct tie_list list; /* ids and conditions are the submitter's */
    const char *problem;  /* set by group_submit(): the id of the job that was looked for last */
    /* Whether the submitter may do this. `job` may be only a description of a job that is gone. */
    bool (*may_read)(void *userdata, const struct job *job);
    bool (*may_change)(void *userdata, const struct job *job);
    void *userdata;
};

/*
 * A sender that waits for room in a cell's queue, and keeps its job; or until it is known whether
 * another job, which is being written to disk, has its id. turn() is called once: when there is
 * room, when that is known, when the time is over, or when waiting is of no use any more. The
 * sender then submits the job again with the same waiter, but not from within turn(), or stops
 * waiting.
 */
struct cell_waiter {
    struct list link;
    struct cell *cell;      /* NULL = does not wait for room */
    struct job_waiter *row; /* on the job that has its id; NULL = does not wait for that */
    struct timer timer;
    usec_t since;    /* monotonic: when it began to wait; valid if there is a deadline */
    usec_t deadline; /* monotonic; 0 = has not begun to wait */
    uint64_t size;   /* of the payload */
    bool called, expired;
    bool bounded; /* as in struct cell_request */
    void *search; /* for jobs on disk: group_search(); NULL = none */
    void (*end_search)(struct cell_waiter *waiter);
    void (*turn)(struct cell_waiter *waiter);
};

void cell_waiter_init(struct cell_waiter *waiter, void (*turn)(struct cell_waiter *waiter));

/* Stops waiting, if it does; keeps the deadline. */
void cell_waiter_stop(struct cell_waiter *waiter);
/* Like cell_waiter_stop(), but also forgets the deadline: for use after a job was accepted or
 * refused. */
void cell_waiter_reset(struct cell_waiter *waiter);

/* Options that few jobs have, kept apart so that other jobs do not pay for them. */
struct cell_request_rare {
    usec_t delay, at;       /* at most JOB_DELAY_MAX from now; 0 = none */
    const void *unique_key; /* of the submitter */
    uint32_t unique_size;   /* 0 = none */
    enum protocol_conflict on_conflict;
    const char *tags; /* protocol_tags_valid() is checked */
    uint32_t tags_size;
    const char *traceparent; /* traceparent_valid() is checked */
    uint32_t traceparent_size;
    /* With a unique key: the delay after the last job with the key, and the longest one after the
     * first; `delay` is unset. 0 = not debounced; no limit. */
    usec_t debounce, debounce_max;
    struct tie_request *ties; /* to other jobs; NULL = none */
    bool opens_batch;         /* it becomes a batch */
    int64_t replaces; /* row of a dead letter, which goes when a durable job is written; 0 = none */
    struct unique_id unique; /* set by group_submit(), unless the caller has */
    /* Set by group_submit(). */
    usec_t debounced;       /* clock_steady(), when the first one came; 0 = not debounced */
    struct job *supersedes; /* waits, and is cancelled when this one is accepted; NULL = none */
};

/* Key and payload are copied on success; a blob is taken over. */
struct cell_request {
    const char *name;    /* chosen id; "" = a random one */
    bool is_slot;        /* a schedule's: `name` is of the reserved form */
    uid_t submitter_uid; /* may read it; 0 = root only */
    bool bounded;        /* this user may not have more waiting than remains free for others */
    const void *key;
    uint32_t key_size;
    bool keep_result;
    struct job_options options;
    usec_t wait;     /* for room, if there is a waiter */
    usec_t deadline; /* from now, waiting included; 0 or USEC_INFINITY = none */
    struct cell_waiter *waiter;
    const void *data; /* inline payload */
    uint64_t size;
    struct payload *blob;           /* NULL = inline; moved out of it on success */
    struct cell_request_rare *rare; /* NULL = nothing of it */
    /* Called for every later change of the job's state, as its first waiter; NULL = none. */
    void (*changed)(struct job_waiter *waiter, struct job *job);
    void *owner;
    uint64_t cookie;
};

enum {
    _CELL_E_SUCCESS,
    CELL_E_BUSY,      /* QueueMax= or QueueMemoryMax=, also after having waited; or the share of
                         a submitter */
    CELL_E_WAIT,      /* the request's waiter waits */
    CELL_E_TOO_LARGE, /* above QueueMemoryMax= by itself */
    CELL_E_EXISTS,    /* a job that was accepted has that id; a durable one is on disk */
    CELL_E_BAD_ID,
    CELL_E_STOPPING,     /* the supervisor stops, or the group is removed */
    CELL_E_DRAINING,     /* until the group is resumed */
    CELL_E_NO_KEY,       /* Cells=by-key requires a key */
    CELL_E_BAD_KEY,      /* Cells=by-key: the key cannot name a cell */
    CELL_E_TOO_MANY,     /* CellsMax= */
    CELL_E_STORE_FULL,   /* Durable=yes: no space on disk */
    CELL_E_STORE_FAILED, /* Durable=yes: the store does not work: see store_problem() */
    CELL_E_LEFT,         /* a durable job that was accepted, and stays on disk for the next start */
    CELL_E_UNREAD,       /* like CELL_E_LEFT, but is about to be read from disk again */
    CELL_E_BAD_FILE,     /* the group's file has a mistake (group_fault_text()) */
    CELL_E_ON_DISK,      /* asked for by its id: it stays on disk, as its group is stopping */
    CELL_E_MISSING,      /* asked for by its id, or read: there is no such job any more */
    CELL_E_TAKEN,        /* a live job holds its unique key: `*ret` */
    CELL_E_EXISTING,     /* OnConflict=existing: `*ret` takes its place */
    /* With the next six, ties->problem is the id of the job that is meant. */
    CELL_E_NO_PARENT,   /* there is no such job */
    CELL_E_UNREADABLE,  /* the submitter may not read that job, or not change that batch */
    CELL_E_NOT_DURABLE, /* Durable=yes, but that job is not durable; or for a batch, vice versa */
    CELL_E_NO_BATCH,    /* that job is no batch */
    CELL_E_BATCH_OVER,  /* that batch is closed, and its members have ended */
    CELL_E_CIRCLE,      /* a job that it is to wait for waits for that batch */
    CELL_E_UNSURE,      /* Durable=yes: the row may be on disk, or the job has run without one */
    CELL_E_DURABLE,     /* moved: it is durable and the other group is not, or the reverse */
    CELL_E_MOVING,      /* moved: it is being written for that reason already */
};

#define TIE_PARENTS_ALLOWED "1 to 64 ids of jobs, separated by commas"

/* Checks the options. Returns the first problem, or NULL. */
const struct job_options_problem *cell_request_check(const struct cell_request *request);

/* Whether a job of this submitter and size that moves has room now: 0 or CELL_E_*. */
int cell_admits(const struct cell *cell, const struct cell_request *request);

/* Accepts a job, which then ends exactly once. Returns 0 with `*ret` (borrowed; valid until its end
 * is reported), CELL_E_*, or -ENOMEM. With CELL_E_TAKEN and CELL_E_EXISTING, `*ret` is the other
 * job, valid in this turn. */
int cell_submit(struct cell *cell, const struct cell_request *request, struct job **ret);

/* Lets the request's waiter wait until a job that has the request's id, or its unique key, is on
 * disk, or could not be written. Returns CELL_E_WAIT; without a waiter CELL_E_BUSY; or -ENOMEM. */
int cell_await_row(const struct cell_request *request, struct job *other);
