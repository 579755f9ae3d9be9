/* SPDX-License-Identifier: MIT */
#pragma once

/* A slot: a place for a worker in a pool, and the life of the worker that fills it. It carries out
 * the life-cycle table. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/channel/endpoint.h"
#include "supervisor/event/death.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/pool/slot/lifecycle.h"
#include "supervisor/pool/slot/slot-health.h"
#include "supervisor/pool/slot/slot-trace.h"
#include "supervisor/process/backoff.h"
#include "supervisor/process/notify-server.h"
#include "supervisor/process/process.h"
#include "supervisor/process/recycle.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;
struct job;
struct kept_state;
struct pool;
struct pool_set;
struct record;
struct slot;
struct slot_template;

/* A place has a member and at most one standby, which is any of the others. */
enum slot_role {
    SLOT_MEMBER,
    SLOT_SPARE,       /* takes the place when the member dies or is replaced */
    SLOT_SUCCESSOR,   /* takes the place when it is ready */
    SLOT_PREDECESSOR, /* had the place, or failed to take it, and is ending */
};

enum slot_plan {
    SLOT_OFF,
    SLOT_ON,    /* a worker is to run in it */
    SLOT_AGAIN, /* likewise, once the present one has ended */
};

enum worker_readiness {
    WORKER_NOT_READY,
    WORKER_READY_EARLY, /* before its process was known */
    WORKER_CAME_UP,     /* was ready once */
};

/* A word in the worker's memory, which the kernel marks when the worker dies: slot-lifeline.c. */
enum worker_lifeline {
    LIFELINE_HELD,
    LIFELINE_LOST,    /* marked as dead: to be judged */
    LIFELINE_FEIGNED, /* marked as dead while it ran */
};

/* Whether KillSignal= was sent to the worker, so that SIGKILL is next. */
enum worker_signalled {
    SIGNALLED_NOT,
    SIGNALLED_BEFORE, /* perhaps, by the last supervisor: this one sends it again */
    SIGNALLED,
};

/* Events that a slot reports to its pool. */
struct slot_handler {
    void (*starting)(struct slot *slot); /* its process is about to be started */
    void (*ready)(struct slot *slot);
    void (*worn)(struct slot *slot, const char *reason); /* it is to be replaced; static reason */
    void (*stopping)(struct slot *slot, bool hurry);     /* it is about to be stopped */
    void (*killed)(struct slot *slot);      /* it is about to be killed, still wanted */
    void (*dying)(struct slot *slot);       /* its process has not ended yet */
    void (*died)(struct slot *slot);        /* or not started; answered by an event of the table */
    void (*restart_due)(struct slot *slot); /* its backoff is over */
    void (*stopped)(struct slot *slot);     /* it has reached LIFECYCLE_STOPPED */
};

/* The state of one process. */
struct worker {
    struct process process;
    struct endpoint endpoint;      /* actors only */
    struct loop_watch owner_watch; /* actors only: shows a death early */
    struct notify_server notify;   /* services only */
    struct submit_socket *submits; /* of MaySubmit=; NULL = none */
    usec_t started_at;             /* monotonic */
    uint64_t jobs_done;
    size_t output_mark;     /* where the output of the job in hand begins */
    uint32_t silent_until;  /* in its outbox: it wrote no output before this position */
    usec_t job_deadline;    /* monotonic; USEC_INFINITY = none */
    usec_t watchdog_seen;   /* monotonic: last sign of life */
    bool put_off;           /* job_deadline, because the result's blob is late */
    uint64_t watchdog_mark; /* heartbeat, state sequence and messages at that time */
    bool endpoint_open;
    bool wants_room;   /* a job did not fit into its inbox */
    bool adopted;      /* is being taken over from the last supervisor */
    bool spawn_failed; /* the process could not be started */
    enum worker_readiness readiness;
    enum worker_lifeline lifeline;
    enum worker_signalled signalled;
    enum death_cause kill_reason; /* why the supervisor ends it; DEATH_EXIT = it does not */
    const char *violation;        /* of the protocol; static */
};

struct slot {
    struct pool *pool;
    unsigned index;
    enum slot_role role;
    unsigned traits;            /* as counted in the census */
    struct slot *standby;       /* of a member: owned; NULL = none */
    struct list review_link;    /* of a member: in pool.reviews or pool.spares_due */
    struct list available_link; /* in pool.available */
    struct actor *actor;        /* NULL for services; the place's, or a standby (delivery.h) */
    bool twin;                  /* uses the second of the place's two cgroups */

    /* The worker. */
    uint64_t generation; /* of the current or last worker */
    uint64_t born;       /* the generation before its first worker */
    uint64_t tried;      /* the highest generation of former standbys */
    enum lifecycle_state state;
    usec_t since_at; /* realtime, of the state */
    struct worker worker;
    struct list jobs; /* in hand, oldest first; struct job.link */
    unsigned n_jobs;
    struct death *last_death;
    enum death_cause died_of;
    char *status_text; /* a service's STATUS=, why an actor ends itself, or why the process could
                          not be started; NULL = none, or out of memory */

    /* Plans. */
    enum slot_plan plan;
    bool retired;      /* freed once stopped: beyond the pool's size, or replaced */
    bool rolls;        /* is to be replaced for another program */
    uid_t notify_user; /* the only one beside root that may send notifications, since others have
                          misused the socket; (uid_t)-1 = any that the service may become; 0 = root
                          alone, until the next start */
    struct list replace_link; /* in replacement.queue */
    const char *replace_reason;
    struct task start; /* queued until the spawner has a place for it */
    usec_t restart_at; /* clock_steady(); 0 = none scheduled */
    uint64_t n_restarts;
    uint64_t n_recycled; /* times that a ready successor took the place */
    struct restart_tally tally;
    struct slot_health health;
    struct recycle recycle;
    struct timer age_timer;
    struct timer reclaim_timer; /* of MemoryReclaimSec=, until it is done */
    uint64_t n_seen;            /* jobs and messages when it was armed */
    struct timer state_timer;   /* start time-out, step of a stop, or backoff, by state */
    struct timer clock;         /* of the work in hand: fires when it is due or earlier */
    bool clocks_messages;
    uint64_t messages_measured; /* consumed when its memory was last measured */
    struct kept_state *kept;    /* for the next supervisor; NULL = nothing is kept */
    bool resumes;               /* `kept` is the last supervisor's */
    usec_t start_took[2];       /* until the last worker was ready; [1] = by fork; 0 = none was */
    struct slot_trace trace;
    struct slot_template *template; /* of Template=slot; NULL = none, or not yet */

    char name[]; /* "group/slot", or "group/key/slot" */
};

/* `twin`: it uses the second cgroup of its place. Returns 0 or -ENOMEM. */
int slot_new(struct slot **ret, struct pool *pool, unsigned index, bool twin);
/* Frees a slot that is stopped or failed. NULL allowed; returns NULL. */
struct slot *slot_free(struct slot *slot);

extern const struct record SLOT_RECORD; /* what is kept of a slot for the next supervisor */

/* Notes the generations of a slot that the last supervisor had and this one has not, so that no
 * later worker gets one of them. */
void slot_note_left(struct pool_set *set, const struct kept_state *state);

/* Keeps its state for the next supervisor: after each event that changes more than the jobs in
 * hand, and before an upgrade. */
void slot_keep(struct slot *slot);
/* Takes over the reference to the last supervisor's report, NULL = none, unless its worker has died
 * since. */
void slot_take_last_death(struct slot *slot, struct death *death);

/* A retired slot ignores start, restart and reset. */
void slot_start(struct slot *slot);
/* Continues where the last supervisor stopped: adopts the process, or starts one if it is wanted.
 * The slot `resumes`. */
void slot_resume(struct slot *slot);
/* Stops an idle worker now, a busy one after its job. With `hurry` TimeoutStopSec= counts from now.
 * Idempotent. */
void slot_stop(struct slot *slot, bool hurry);
/* Signals a stopping worker that has a job in hand after this time at the latest. */
void slot_stop_within(struct slot *slot, usec_t time);
void slot_restart(struct slot *slot);
void slot_reset(struct slot *slot);
/* Ends the worker and what it has in hand, from KillSignal= on; the slot stays as wanted as it is.
 * Returns false if there is no worker, or it is being killed already. */
bool slot_kill(struct slot *slot, enum death_cause cause);

/* Sends a signal to the worker's main process. Returns false if it has none. */
bool slot_send_signal(struct slot *slot, int signal);

/* Hands a job over. Returns 0; on ENDPOINT_E_FULL or -errno the caller keeps the job, and the
 * worker may have been killed. */
int slot_assign(struct slot *slot, struct job *job);
/* Raises the cancel flag of a job in hand; a worker that does not end it within TimeoutStopSec= is
 * killed. */
void slot_cancel(struct slot *slot, struct job *job);

/* Copies the state page of the worker, or of the last one: at most MEMORY_STATE_MAX bytes; size 0 =
 * none. Returns -EAGAIN if the bytes may be torn, because the worker was writing. */
int slot_read_state(struct slot *slot, void *data, size_t *ret_size);
/* Whether the worker has published its state page since it began this job, which it has in hand. */
bool slot_has_published(const struct slot *slot, const struct job *job);

/* Idle or busy. */
static inline bool slot_is_up(const struct slot *slot)
{
    return slot->state == LIFECYCLE_IDLE || slot->state == LIFECYCLE_BUSY;
}

/* Stopped or failed. */
static inline bool slot_is_down(const struct slot *slot)
{
    return slot->state == LIFECYCLE_STOPPED || slot->state == LIFECYCLE_FAILED;
}
