/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A cell: one queue of jobs and one pool of slots. Ready slots announce themselves; cell_dispatch()
 * matches all waiting jobs to all available slots in one pass.
 *
 * A group without keys has one, called like the group; a group of Cells=by-key has one for each key
 * that was used lately. It is made with its first job, and retires when it has had none for
 * CellIdleSec=: its slots stop, then the group lets it go. A job that comes meanwhile calls it
 * back.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include "supervisor/config/config.h"
#include "supervisor/event/death.h"
#include "supervisor/event/latency.h"
#include "supervisor/job/job.h"
#include "supervisor/job/outcomes.h"
#include "supervisor/job/queue.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/pool/census.h"
#include "supervisor/pool/progress.h"
#include "supervisor/pool/replacement.h"
#include "supervisor/process/backoff.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct context;
struct group;
struct slot;

struct cell_counters {
    uint64_t succeeded, rejected, cancelled, dead;
    uint64_t retries, refused, deaths, stale_answers;
};

/* "group", or "group/key" */
#define CELL_NAME_MAX (CONFIG_GROUP_NAME_MAX + 1 + PROTOCOL_NAME_MAX + 1)

struct cell {
    struct context *context;
    struct group *group;
    const struct config_group *config; /* the group's */
    char name[CELL_NAME_MAX];
    struct actor *actor; /* the pool, as a whole; NULL for services */
    const char *key;     /* in the name; "" for the one cell of a group without keys */
    struct list link;    /* in the group's table, likewise below */
    struct list cursors; /* struct cell_cursor.link */
    struct cell *next_in_bucket;
    uint64_t hash;
    struct slot **slots; /* 0 … n_slots-1, then those that are draining */
    size_t n_slots;
    struct slot *aside;  /* a successor on its way up, or its predecessor on its way out; or NULL */
    size_t size;         /* wanted */
    struct list reviews; /* members whose spare is to be looked at, struct slot.review_link */
    struct list spares_due; /* and those that are to get one when this fires: */
    struct timer spare_timer;
    struct census census;
    struct list available; /* slots, struct slot.available_link */
    struct queue queue;    /* jobs queued */
    struct list backoff;   /* jobs between attempts, and those whose time has not come */
    struct list waiting;   /* for room in the queue, the first comer first */
    struct list called;    /* of these: whose turn it is, and who have not come yet */
    uint64_t n_running, n_backoff;
    uint64_t n_waiters, n_called; /* in these two lists, and in the latter */
    uint64_t queue_bytes;         /* payloads of live jobs */
    uint64_t called_bytes;        /* those of who was called */
    bool wanted;                  /* its slots are to run */
    bool paused;
    bool own_size;      /* somebody gave it a size that is not its group's */
    const char *closed; /* why no job is accepted any more and none is retried; NULL = open */
    bool retiring;      /* its slots stop, and it goes with the last of them */
    struct replacement replacement;
    struct restart_tally tally; /* of all its workers, if Strategy= has them die together */
    bool release_due;           /* those that are held may start once all of them are down */
    struct progress progress;
    struct cell_counters counters;
    struct latency latency; /* of jobs that a worker ended, from being accepted */
    struct latency work;    /* the same, from the beginning of the last attempt */
    struct outcomes outcomes;
    usec_t idle_since;       /* monotonic: when its last live job ended */
    struct timer idle_timer; /* lazily armed: fires at or before it has been idle long enough */
    struct loop_deferred dispatch; /* also lets go of slots that are no longer needed */
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

/* Its name, or NULL if it is all of its group: what an event says. */
const char *cell_event_name(const struct cell *cell);

/* An event of this cell; the message is its name and `text`. `message_id` may be NULL. */
void cell_tell(struct cell *cell, enum log_level level, const char *type, const char *message_id,
               const char *text);

/* For status: as of a group, and "retiring". */
const char *cell_state(const struct cell *cell);

/* ---- its pool: cell-pool.c ---- */

void cell_start(struct cell *cell);
/* Queued jobs stay queued. */
void cell_stop(struct cell *cell, bool hurry);
void cell_restart(struct cell *cell);
void cell_reset(struct cell *cell);

/* Makes room for a pool of `size`. 0 or -ENOMEM, and nothing has changed. */
int cell_reserve(struct cell *cell, size_t size);

/* To a size that was reserved: new slots start if the cell is to run; the highest ones drain. */
void cell_set_size(struct cell *cell, size_t size);

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

/* All its slots: the members by their number, then those beside them, the one aside last. NULL when
 * done; `cursor` starts at 0. */
struct slot *cell_next_slot(const struct cell *cell, size_t *cursor);

/* The pool is as large as it is to be: no slot is left over that is on its way out. */
bool cell_is_trimmed(const struct cell *cell);

/* Jobs that have not ended. */
uint64_t cell_live_jobs(const struct cell *cell);

/* ---- told by its slots ---- */

void cell_slot_available(struct cell *cell, struct slot *slot);
/* Prefetch=: it is at work, and takes one more. */
void cell_slot_has_room(struct cell *cell, struct slot *slot);
void cell_slot_withdrawn(struct cell *cell, struct slot *slot);
void cell_slot_stopped(struct cell *cell, struct slot *slot);
void cell_job_started(struct cell *cell, struct job *job);
/* The worker's answer to the running attempt. `result` is moved from. */
void cell_job_answered(struct cell *cell, struct job *job, const char *worker,
                       enum protocol_outcome outcome, int32_t code, struct payload *result);
/* The worker died before it began this job (Prefetch=): no attempt was made. */
void cell_job_returned(struct cell *cell, struct job *job);
/* The worker died (or was killed) with this job in hand. */
void cell_job_lost(struct cell *cell, struct job *job, const struct death *death);
