/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A schedule (NAME.schedule) at run time. It takes up its slots one after the other. Each is
 * decided exactly once; what is decided outlives the supervisor: in shared memory, and in the
 * store.
 *
 * A slot's job has an id of its own, so the group accepts it once only. The decision follows the
 * acceptance: after a crash between the two, the slot is given to the group again.
 */

#include "shared/base/list.h"
#include "supervisor/calendar/calendar.h"
#include "supervisor/config/config-schedule.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/schedule/slot.h"
#include "supervisor/store/schedule-rows.h"
#include <stdbool.h>
#include <stdint.h>

struct cell_request;
struct group;
struct job;
struct job_waiter;
struct kept_state;
struct kept_states;
struct plan_write;

/* A slot that comes this much later than its time is late: only CatchUp= fires it. */
#define PLAN_LATE (10 * USEC_PER_SEC)
/* How many live jobs are watched: with Overlap=allow there may be more, which stay on disk. */
#define PLAN_JOBS_MAX 1000
/* A clock that is set back by more makes the schedule start again. */
#define PLAN_CLOCK_BACK (INT64_C(24) * 3600)

enum plan_pause {
    PLAN_RUNS,
    PLAN_PAUSED,        /* on request */
    PLAN_PAUSED_FAILED, /* PauseOnFailure= */
};

/* What all schedules share. */
struct plan_context {
    const struct group_context *groups;
    struct kept_states *kept;
    struct work_queue *steps; /* each takes up many slots, and there may be many schedules */
    bool stopped;             /* the supervisor stops: no slot is taken up */
};

/* A line of OnCalendar=, and what was found for it last: some calendars take long to search. */
struct plan_times {
    struct calendar calendar;
    int64_t after, next; /* nothing comes between these seconds; INT64_MAX = nor ever after */
};

struct plan {
    const struct plan_context *context;
    struct config_schedule *config; /* owned */
    uint64_t handle;                /* in struct plans */
    struct zones zones;
    struct plan_times *times;
    size_t n_times;
    int64_t until;            /* the last possible slot */
    struct schedule_row *row; /* in `kept`, or `own_row` */
    struct schedule_row own_row;
    struct kept_state *kept; /* NULL = nothing is kept in memory */
    bool known;              /* `row` is what the last supervisor has left, or new */
    bool attached;           /* the live jobs of earlier slots are found */
    unsigned n_looked;       /* of row->last, for that */
    struct job_lookup lookup;
    struct list jobs;              /* struct job_waiter.owner_link: of live jobs */
    unsigned n_jobs;               /* of them; at most PLAN_JOBS_MAX */
    struct job_waiter *submission; /* of row->firing, while its job is being written; or NULL */
    struct alarm alarm;            /* for the next slot */
    struct task step;
    struct plan_write *write; /* the store has it; NULL = nothing is being written */
    bool changed;             /* since then */
    int64_t lost; /* row->firing as it was on disk when everything had ended; 0 = none */
    struct decided_slot untold; /* the last of `n_untold` slots that are not in the log yet */
    unsigned n_untold;
    usec_t on_time; /* when the last slot that was not late was due */
};

/* Takes `config` over on success. Returns 0 or -errno. plan_begin() follows. */
int plan_new(struct plan **ret, const struct plan_context *context, struct config_schedule *config);
struct plan *plan_free(struct plan *plan); /* returns NULL */
/* Takes a new configuration over on success. Returns 0 or -errno. */
int plan_reconfigure(struct plan *plan, struct config_schedule *config);

/* Removes the row of a schedule whose file is gone: a later one of that name has no past. */
void plan_remove_row(const struct plan_context *context, const char *name);

/* Begins with the state that the last supervisor has left: `row`, or NULL if there is none. */
void plan_begin(struct plan *plan, const struct schedule_row *row);
/* Has the schedule look, in a later turn, whether a slot can be fired. */
void plan_review(struct plan *plan);

/* Whether a job of the schedule is live. */
static inline bool plan_is_running(const struct plan *plan)
{
    return !list_empty(&plan->jobs) || plan->submission;
}
/* Returns its group, or NULL. */
struct group *plan_group(const struct plan *plan);
/* "active", "paused", "failed", "blocked": see io.troupe.Schedules. */
const char *plan_state(const struct plan *plan);
/* Returns why it cannot take up a slot now, or NULL. Static. */
const char *plan_obstacle(const struct plan *plan);

/* The second that the clock shows; at least 1. */
int64_t plan_now(const struct plan *plan);
/* Returns the first slot after this second, or 0 if there is none, or if it is not known yet. */
int64_t plan_next(const struct plan *plan, int64_t after);
/* Returns the first slot after this second that OnCalendar= names, or 0. */
int64_t plan_next_by_calendar(const struct plan *plan, int64_t after);
/* When a slot is fired. */
usec_t plan_due(const struct plan *plan, int64_t slot);

/* Both are idempotent. A resumed schedule treats the slots in between as CatchUp= says. */
void plan_pause(struct plan *plan, enum plan_pause why);
void plan_resume(struct plan *plan);

enum {
    _PLAN_E_SUCCESS,
    PLAN_E_NO_SLOT,  /* not a future slot */
    PLAN_E_TOO_MANY, /* SCHEDULE_SKIPS_MAX are to be skipped already */
};
/* Skips a future slot, or the one that waits. Returns 0 or PLAN_E_*. */
int plan_skip(struct plan *plan, int64_t slot);

/* Creates the job of a slot, or of any other second, without deciding about a slot. The caller sets
 * `changed`, `owner` and `cookie` of `request` if it needs them. Returns like group_submit(), or
 * CELL_E_MISSING without a group. */
int plan_submit(struct plan *plan, int64_t slot, struct cell_request *request, struct job **ret);
/* Like plan_submit(), for a job on request, which is noted when it is accepted; a durable job and
 * the note are written in one transaction. `*ret_waiter` is the caller's waiter; NULL without
 * `changed`. */
int plan_run(struct plan *plan, int64_t slot, struct cell_request *request, struct job **ret,
             struct job_waiter **ret_waiter);
