/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A cell: a queue of jobs and a pool of workers. At the end of a turn it hands queued jobs to slots
 * that can take one.
 *
 * A group without keys has one cell, with the group's name; a group with Cells=by-key has one for
 * each key in use. Such a cell is made with its first job, and retires after CellIdleSec= without
 * one: its slots stop, then the group frees it. A job that arrives before that calls it back.
 */

#include "shared/base/clock.h"
#include "shared/base/heap.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include "supervisor/config/config.h"
#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-later.h"
#include "supervisor/group/cell/cell-progress.h"
#include "supervisor/group/cell/job-stats.h"
#include "supervisor/group/cell/limit.h"
#include "supervisor/group/group-context.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "supervisor/job/submitter.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/pool/budget.h"
#include "supervisor/pool/elastic.h"
#include "supervisor/pool/pool.h"
#include "supervisor/store/durable-job.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cell;
struct cell_backlog;
struct group;
struct loaded_job;
struct saved_job;

/* Calls to the group of a cell. */
struct cell_handler {
    void (*down)(struct group *group);      /* all slots of a cell are stopped or failed */
    void (*drained)(struct group *group);   /* it is removed, and jobs may have ended */
    void (*drains)(struct group *group);    /* it drains, and jobs may have ended */
    void (*retired)(struct cell *cell);     /* without slots: the group frees it */
    void (*roll_failed)(struct cell *cell); /* a worker with the new program did not come up */
    void (*sized)(struct cell *cell);       /* an elastic pool has another size */
};

/* "group", or "group/key" */
#define CELL_NAME_MAX (CONFIG_GROUP_NAME_MAX + 1 + PROTOCOL_NAME_MAX + 1)

enum cell_pause {
    CELL_RUNS,
    CELL_HELD_BACK, /* by safe mode */
    CELL_PAUSED,    /* by a request */
};

/* How many commands to its group a cell has carried out, by what they decide; modulo 256. Whatever
 * is kept of a cell from before the last of them does not count. */
struct cell_heard {
    uint8_t lives, pauses, sizes;
};

struct cell {
    const struct group_context *context;
    struct group *group;
    const struct config_group *config; /* the group's */
    bool reconfigured;                 /* jobs may have been accepted by another one */
    char name[CELL_NAME_MAX];
    const char *key;       /* in the name; "" in a group without keys */
    struct list link;      /* in the group's table, as by_key */
    struct list live_link; /* in the group's table, while it has live jobs */
    struct index_entry by_key;
    struct heap_node by_age; /* in the group's table, as of the end of a turn */
    struct pool pool;
    struct queue queue;           /* jobs queued */
    struct cell_backlog *backlog; /* durable jobs behind them; NULL = none so far */
    struct cell_later later;      /* durable jobs that begin much later */
    struct list backoff;          /* jobs between attempts, and those whose time has not come */
    struct list pending;          /* jobs that wait for others, and batches: job-ties.h */
    struct list lines;            /* struct limit_key.link: keys that hold jobs of the cell */
    struct limit_waiter limit_waiter;
    bool limit_stops;    /* a limit holds its next job */
    struct list aside;   /* queued jobs that a gate holds: job.aside */
    struct list waiting; /* for room in the queue: struct cell_waiter.link, oldest first */
    struct list called;  /* waiters whose turn it is, and for which room is kept */
    uint64_t n_called;
    uint64_t called_bytes; /* their payloads */
    struct submitters submitters;
    enum cell_pause pause;
    uint64_t next_command; /* to its group: cell-command.h */
    struct cell_heard heard;
    unsigned left_at;          /* group.n_returns with which jobs that it has left are read again */
    const char *closed;        /* why this cell alone is closed; NULL = it is not */
    struct kept_state *kept;   /* for the next supervisor; NULL = nothing is kept */
    bool resumes;              /* `kept` is the last supervisor's */
    struct elastic elastic;    /* of an elastic pool: decides about its size */
    struct budget_part budget; /* of PoolMax= */
    struct timer size_timer;   /* when it decides again, at the latest */
    struct cell_progress progress;
    struct job_counts counts;
    struct job_history history;
    struct durable_hold hold;
    usec_t idle_since;             /* monotonic: when its last live job ended */
    struct timer idle_timer;       /* fires when it may have been idle for CellIdleSec= */
    struct loop_deferred dispatch; /* matches jobs and slots at the end of the turn */
};

/* Whether the cell is freed once its slots have stopped. */
static inline bool cell_is_retiring(const struct cell *cell)
{
    return cell->pool.retiring;
}

/* Another pool's share of PoolMax= has changed; for budget_init(). */
void cell_decide_again(struct budget_part *part);

/* Whether the cell itself, not only its group, was resized. */
bool cell_has_own_size(const struct cell *cell);

/* Makes a cell with stopped slots, in no table. `key` is "" or valid by protocol_name_valid().
 * Returns 0 or -ENOMEM. */
int cell_new(struct cell **ret, struct group *group, const char *key);
/* Frees a cell whose slots are all stopped and that has no live job. NULL allowed; returns NULL. */
struct cell *cell_free(struct cell *cell);

enum {
    _CELL_CANCEL_E_SUCCESS,
    CELL_CANCEL_E_ENDED,
    CELL_CANCEL_E_ALREADY,      /* requested before */
    CELL_CANCEL_E_ALREADY_WAIT, /* the same, and that request is being written: await it alike */
    CELL_CANCEL_E_WAIT,         /* the request, or an end before it, is being written: await it with
                                   durable_job_await() */
};

/* Cancels a job: immediately, or a running one by slot_cancel(). `canceller`: JOB_NOBODY = none. */
int cell_cancel(struct job *job, enum protocol_cause cause, uid_t canceller);

/*
 * Changes of a live job that waits, and whose end is not decided. A durable job is being written
 * when they return. Return 0, CELL_E_*, or -ENOMEM.
 */

/* Moves it, with its checkpoint and the rest of its wait, to a cell that admits it. It stays unique
 * in its former group, and keeps the attempts that it has left. */
void cell_move_job(struct job *job, struct cell *to);
/* Makes it the last one of this priority. */
int cell_set_priority(struct job *job, uint8_t priority);
/* Lets it begin no earlier than `delay` from now. It must not be pending. */
int cell_set_delay(struct job *job, usec_t delay);
/* Ends its delay or pause. */
int cell_run_now(struct job *job);

/* A paused cell hands out no jobs and delivers no messages. */
void cell_set_pause(struct cell *cell, enum cell_pause pause);

/* Returns the name of its state: see state.h. */
const char *cell_state(const struct cell *cell);
/* Whether most of its last jobs are dead. */
bool cell_is_failing(const struct cell *cell);

/* Continues with the requests that the last supervisor has kept; pool_resume() follows. Without a
 * record, its group says whether it is wanted. */
void cell_resume(struct cell *cell);
/* Sets a size of its own, or its group's; the slots are reserved. */
void cell_set_size(struct cell *cell, size_t size);

/* Like the calls for its pool. Jobs of a stopped cell stay queued. */
void cell_start(struct cell *cell);
void cell_stop(struct cell *cell, bool hurry);
void cell_restart(struct cell *cell);
/* Also forgets the outcomes of its last jobs. */
void cell_reset(struct cell *cell);

/* Retires a keyed cell once it has been idle for CellIdleSec=, unless it was paused, stopped or
 * resized by itself. */
void cell_watch_idle(struct cell *cell);

/* Called after a change of the configuration. */
void cell_review(struct cell *cell);

/* Ends a cell's retirement. Returns 0 or -ENOMEM. */
int cell_call_back(struct cell *cell);

/* Counts of jobs that waited in closed cells. */
struct cell_ends {
    uint64_t n_cancelled, n_left; /* on disk */
};
/* If the cell is closed, cancels the next job that is not running, or leaves it on disk; otherwise
 * turns away the next sender that waits for room. Returns false when none is left. */
bool cell_close_next(struct cell *cell, struct cell_ends *ends);

/* ---- durable jobs ---- */

/* See struct durable_jobs.written. */
void cell_on_written(struct job *job, unsigned changes, int result);
/* Returns what is kept of a job with this end: bits of enum durable_rest. */
unsigned cell_rest_of(const struct cell *cell, const struct job *job, enum job_state end);

/* ---- jobs of rows that were read ---- */

/* `saved`: of a job that is not durable, whose handle is free; NULL = the job is durable. */

/* Makes a queued job, in no list, of a row that waits for a worker. Takes over its payload.
 * cell_end_damaged() follows. Returns 0, CELL_E_EXISTS if another job has its id, or -ENOMEM. */
int cell_restore_job(struct cell *cell, struct loaded_job *loaded, const struct saved_job *saved,
                     struct job **ret);

/* Ends such a job if its row is damaged: it is dead, and says why. Returns whether it is. */
bool cell_end_damaged(struct cell *cell, struct job *job, const struct loaded_job *loaded);

/* Complete a job that a worker of the last supervisor has, or had, in hand: with the jobs that it
 * waited for, or with its whole row, including payload and options. Return 0 or -ENOMEM, the first
 * also -EBADMSG. */
int cell_complete_ties(struct cell *cell, struct job *job, const struct job_row *row);
int cell_complete_job(struct cell *cell, struct job *job, struct loaded_job *loaded);

/* Makes a live job of any row, and continues where it stood. Returns like cell_restore_job(). */
int cell_resume_job(struct cell *cell, struct loaded_job *loaded, const struct saved_job *saved);

/* Restores the attempts of a kept result, whose row was read, if an upgrade has handed them over.
 */
void cell_give_attempts(struct durable_jobs *durable, struct job *job, int64_t number);

static inline struct cell *cell_of_pool(const struct pool *pool)
{
    return list_entry(pool, struct cell, pool);
}
