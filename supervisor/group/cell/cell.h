/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A cell: a queue of jobs and a pool of workers. At the end of a turn it matches all waiting jobs
 * to all slots that can take one.
 *
 * A group without keys has one, called like the group; a group of Cells=by-key has one for each key
 * that was used lately. It is made with its first job, and retires when it has had none for
 * CellIdleSec=: its slots stop, then the group lets it go. A job that comes meanwhile calls it
 * back.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include "supervisor/config/config.h"
#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-progress.h"
#include "supervisor/group/cell/job-stats.h"
#include "supervisor/group/group-context.h"
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/pool/pool.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cell;
struct group;

/* What a cell tells its group, which fills this in. */
struct cell_handler {
    void (*down)(struct group *group);      /* all slots of a cell are stopped or failed */
    void (*drained)(struct group *group);   /* it is removed, and its last job has ended */
    void (*retired)(struct cell *cell);     /* its last slot is gone: the group frees the cell */
    void (*roll_failed)(struct cell *cell); /* a worker with the new program did not come up */
};

/* "group", or "group/key" */
#define CELL_NAME_MAX (CONFIG_GROUP_NAME_MAX + 1 + PROTOCOL_NAME_MAX + 1)

struct cell {
    const struct group_context *context;
    struct group *group;
    const struct config_group *config; /* the group's */
    char name[CELL_NAME_MAX];
    const char *key;     /* in the name; "" for the one cell of a group without keys */
    struct list link;    /* in the group's table, likewise below */
    struct list cursors; /* struct cell_cursor.link */
    struct index_entry by_key;
    struct pool pool;
    struct queue queue;  /* jobs queued */
    struct list backoff; /* jobs between attempts, and those whose time has not come */
    struct list waiting; /* for room in the queue, the first comer first */
    struct list called;  /* of these: whose turn it is, and who have not come yet */
    uint64_t n_called;
    uint64_t called_bytes; /* payloads of those */
    bool paused;
    bool own_size;      /* somebody gave it a size that is not its group's */
    const char *closed; /* why no job is accepted any more and none is retried; NULL = open */
    bool retiring;      /* its slots stop, and it goes with the last of them */
    struct progress progress;
    struct job_counts counts;
    struct job_history history;
    usec_t idle_since;       /* monotonic: when its last live job ended */
    struct timer idle_timer; /* lazily armed: fires at or before it has been idle long enough */
    struct loop_deferred dispatch; /* matches jobs and slots at the end of the turn */
};

/*
 * Makes the group's size of slots, stopped; in no table yet. `key` is "" or valid by
 * protocol_name_valid(). 0 or -ENOMEM.
 */
int cell_new(struct cell **ret, struct group *group, const char *key);
struct cell *cell_free(struct cell *cell); /* all slots stopped, no live job; NULL allowed */

/* All who wait have to ask again: nothing is accepted here any more, or it goes away. */
void cell_turn_away(struct cell *cell);

enum {
    _CELL_CANCEL_E_SUCCESS,
    CELL_CANCEL_E_ENDED,   /* it has ended: nothing to cancel */
    CELL_CANCEL_E_ALREADY, /* cancellation was requested before */
};

/* Whoever asks for it from outside is noted in `canceller` before. Queued: cancelled at once.
 * Running: flag raised, then the stop ladder after TimeoutStopSec=. */
int cell_cancel(struct job *job);

void cell_pause(struct cell *cell);
void cell_resume(struct cell *cell);

/* Returns the name of its state: see state.h. */
const char *cell_state(const struct cell *cell);

/* As its pool; also forgets the outcomes of its last jobs, or looks whether it has been idle. To
 * stop its pool, pool_stop(): queued jobs stay queued. */
void cell_start(struct cell *cell);
void cell_restart(struct cell *cell);
void cell_reset(struct cell *cell);

/*
 * Looks whether it has been idle for CellIdleSec=, now or when that will be, unless somebody has
 * paused, stopped or resized it by itself. Does nothing to a cell without key.
 */
void cell_watch_idle(struct cell *cell);

/* After a change of its group's configuration: CellIdleSec= may be over, the queue have room. */
void cell_review(struct cell *cell);

/* A retiring one is wanted again: its slots come back. 0 or -ENOMEM. */
int cell_call_back(struct cell *cell);

/* Accepts and retries nothing any more; what is not running ends as cancelled, now, with `why`
 * (static) as its reason. */
void cell_close(struct cell *cell, const char *why);

/* The cell that a pool belongs to. */
static inline struct cell *cell_of_pool(const struct pool *pool)
{
    return list_entry(pool, struct cell, pool);
}
