/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A slot: a place in a cell's pool and the life of whichever worker fills it. It carries out what
 * the life-cycle table says.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/channel/endpoint.h"
#include "supervisor/event/death.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/pool/slot/lifecycle.h"
#include "supervisor/pool/slot/slot-health.h"
#include "supervisor/process/backoff.h"
#include "supervisor/process/notify-server.h"
#include "supervisor/process/process.h"
#include "supervisor/process/recycle.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;
struct job;
struct pool;
struct slot;

/* Its part in a place of the pool; all but the member are the place's standby. */
enum slot_role {
    SLOT_MEMBER,
    SLOT_SPARE,       /* takes the place when the member dies or is replaced */
    SLOT_SUCCESSOR,   /* takes the place when it is ready */
    SLOT_PREDECESSOR, /* had the place, or failed to take it, and is on its way out */
};

/* What a slot tells its pool. */
struct slot_handler {
    /* A process is about to be started for it. */
    void (*starting)(struct slot *slot);
    /* Its worker has come up. */
    void (*ready)(struct slot *slot);
    /* Its worker has done enough: `reason` (static) says of what. */
    void (*worn)(struct slot *slot, const char *reason);
    /* Nobody wants a worker in it any more, or only after its end. */
    void (*stopping)(struct slot *slot, bool hurry);
    /* Its worker is ended, and the place still wanted. */
    void (*killed)(struct slot *slot);
    /* Its worker is dying, and not dead yet. */
    void (*dying)(struct slot *slot);
    /* Its worker is dead, or could not be started: the pool answers with an event. */
    void (*died)(struct slot *slot);
    /* The time until its restart is over. */
    void (*restart_due)(struct slot *slot);
    /* It has reached LIFECYCLE_STOPPED. */
    void (*stopped)(struct slot *slot);
};

/* What is born and dies with a process. */
struct worker {
    struct process process;
    struct endpoint endpoint;      /* actors only */
    struct loop_watch owner_watch; /* actors: hears of the worker's death early */
    struct notify_server notify;   /* services only */
    usec_t started_at;             /* monotonic */
    uint64_t jobs_done;
    size_t output_mark;     /* of its output: where the job in hand began */
    usec_t job_deadline;    /* monotonic; USEC_INFINITY = none */
    usec_t watchdog_seen;   /* monotonic: last sign of life */
    uint64_t watchdog_mark; /* heartbeat, state sequence and messages as they were then */
    bool endpoint_open;
    bool wants_room;              /* a job found none in its inbox */
    bool early;                   /* was ready before its process was known */
    bool came_up;                 /* was ready once */
    bool spawn_failed;            /* no process came of it */
    bool signalled;               /* KillSignal was sent: the next rung is SIGKILL */
    bool feigned;                 /* its lifeline was marked as a dead one's while it ran */
    enum death_cause kill_reason; /* why we are killing it; DEATH_EXIT = we are not */
    struct spawn_exit exit;       /* how the process ended */
    char violation[64];           /* what it broke */
    char leave_reason[96];        /* why it ends itself; empty = it does not */
};

/* A place, or the standby of one. */
struct slot {
    struct pool *pool;
    unsigned index;
    char name[DEATH_WORKER_MAX]; /* "group/slot", or "group/key/slot" */
    enum slot_role role;
    unsigned traits;            /* as it is counted: see census.h */
    struct slot *standby;       /* a member's: the second worker of its place; owned; NULL = none */
    struct list review_link;    /* a member's, in pool.reviews or pool.spares_due */
    struct list available_link; /* in pool.available */
    struct actor *actor;        /* NULL for services; the place's, or a stand-in (stand-in.h) */
    bool twin;                  /* has the other one of the place's two cgroups */

    /* Which worker is in it. */
    uint64_t generation; /* of the worker that is, or was last, in it */
    uint64_t born;       /* what it began with: that of no worker */
    uint64_t tried;      /* the highest of standbys that are gone */
    enum lifecycle_state state;
    usec_t since_at; /* realtime, of the state */
    struct worker worker;
    struct list jobs; /* in hand, oldest first; struct job.link */
    unsigned n_jobs;
    struct death *last_death;
    enum death_cause died_of; /* the last one */
    char status_text[128];    /* a service's STATUS=, or why it could not be started */

    /* What is to become of it. */
    bool wanted;              /* somebody wants a worker in it */
    bool retired;             /* beyond the pool's size: goes away once stopped */
    bool restart_asked;       /* start again once stopped */
    bool held;                /* down with others, and starts again when all of them are */
    bool undecided;           /* is to start with others: has neither come up nor failed yet */
    bool rolls;               /* is to be replaced for another program */
    struct list replace_link; /* in replacement.queue */
    const char *replace_reason;
    struct task start; /* its turn to start has not come yet */
    usec_t restart_at; /* realtime; 0 = none scheduled */
    uint64_t n_restarts;
    uint64_t n_recycled; /* replaced by a successor that was ready */
    struct restart_tally tally;
    struct slot_health health;
    struct recycle recycle;
    struct timer age_timer;
    struct timer
        ladder_timer;   /* start time-out, rungs of the stop ladder, restart: one at a time */
    struct timer clock; /* lazily armed: fires at or before whatever is due; slot-timeouts.c */
    bool clocks_messages;
    uint64_t messages_measured; /* how many were consumed when its memory was looked at */
};

/* 0 or -ENOMEM. */
int slot_new(struct slot **ret, struct pool *pool, unsigned index);
struct slot *slot_free(struct slot *slot); /* stopped; NULL allowed; returns NULL */

/* Starting, restarting and resetting mean nothing to a slot that is retired. */
void slot_start(struct slot *slot);
/* Idle now, busy after its job. With `hurry` the ladder's clock runs at once. Twice changes
 * nothing. */
void slot_stop(struct slot *slot, bool hurry);
/* One that stops is signalled after this time at the latest, if it still has a job in hand then. */
void slot_stop_within(struct slot *slot, usec_t time);
void slot_restart(struct slot *slot);
void slot_reset(struct slot *slot);
/* Ends the worker, and with it what it has in hand, by the stop ladder from KillSignal= on: it is
 * not less wanted for that. False if there is none, or it is being ended already. */
bool slot_kill(struct slot *slot, enum death_cause cause);
/* Other limits: MaxAgeSec=, WatchdogSec=, MaxMemory=. */
void slot_take_config(struct slot *slot);
/* There are messages for it to handle, and were none. */
void slot_clock_messages(struct slot *slot);

/* Hands a job over. 0; otherwise (ENDPOINT_E_FULL, -errno) the caller keeps it, and the slot may be
 * going. */
int slot_assign(struct slot *slot, struct job *job);
/* Whether a job waits for room in its inbox. */
bool slot_job_waits(const struct slot *slot);
/* Raises the cancel flag for a job in hand, and the ladder if it does not end within
 * TimeoutStopSec=. */
void slot_cancel(struct slot *slot, struct job *job);

/* The successor takes the place: the place's actor is its own from now on, and `old` has the
 * successor's stand-in. */
void slot_swap_actors(struct slot *old, struct slot *successor);

/* From the notify socket of services. */
void slot_notify(struct slot *slot, const struct notify_message *message);

/* The worker's state page, now or as it was last: size, 0 = none, or -EAGAIN. MEMORY_STATE_MAX
 * bytes. */
int slot_read_state(struct slot *slot, void *data, size_t *ret_size);

/* That page is about this job, which the slot has: it was published since the job was started. */
bool slot_has_published(const struct slot *slot, const struct job *job);

bool slot_is_up(const struct slot *slot);   /* idle or busy */
bool slot_is_down(const struct slot *slot); /* stopped or failed */
