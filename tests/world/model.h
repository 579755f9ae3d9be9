/* SPDX-License-Identifier: MIT */
#pragma once

/* What the world promises: notes what happens to each job, and judges. */

#include "shared/base/clock.h"
#include "tests/world/sched.h"
#include <stdbool.h>
#include <stdint.h>

struct troupe_result;

/* What a job is to do, as its payload says. */
enum model_kind {
    MODEL_SUCCEED,
    MODEL_REJECT,
    MODEL_RETRY, /* until its attempts are used up */
    MODEL_SLOW,
    MODEL_CRASH,   /* the worker dies */
    MODEL_STUCK,   /* beyond the time limit of an attempt */
    MODEL_ENDLESS, /* until it is cancelled */
    _MODEL_N_KINDS,
};

/* MaxRetries= of the groups, and one; TimeoutSec=. */
#define MODEL_ATTEMPTS 3
#define MODEL_LIMIT    (4 * USEC_PER_SEC)
/* The latest deadline of a job that is endless. */
#define MODEL_ENDLESS_MAX (60 * USEC_PER_SEC)

/* What a group promises, as its file says; the second one is durable. */
struct model_group {
    unsigned running, rate; /* at the same time; per second; 0 = no limit */
    usec_t behind;          /* how long a job may wait for those that its worker has before it */
    bool running_per_key, rate_per_key;
    bool until_start; /* UniqueUntil= */
    bool shares;      /* the named limit */
    bool shrinks;     /* a worker that is killed may have been about to stop */
};
extern struct model_group model_groups[2];
/* How many units of jobs of these run at the same time. */
extern unsigned model_shared;

/* Unique keys are numbers: what happens in a conflict, or that of all slots. */
#define MODEL_N_UNIQUE    5
#define MODEL_UNIQUE_SLOT MODEL_N_UNIQUE

enum model_fate {
    MODEL_OPEN,
    MODEL_ENDED,
    MODEL_REFUSED,
    MODEL_UNKNOWN
};

struct model_job {
    uint32_t kind;
    bool durable; /* the group */
    uint32_t size, result_size;
    uint8_t key, unique;    /* numbers; unique: 0 = it has none */
    usec_t delay, deadline; /* spans; 0 = none */
    unsigned cost;
    uint32_t parent; /* the job for whose end it waits; 0 = none; enum troupe_condition */
    unsigned condition;
    /* Noted by others: */
    bool may_be_cancelled; /* that is about to be requested */
    unsigned n_unsure;     /* how often a client was told that it may be accepted or not */
    unsigned maybe_saved;  /* the attempt that is about to save a checkpoint */
    /* Noted by the model: */
    enum model_fate fate; /* as its client knows it; MODEL_UNKNOWN: the connection was lost */
    int end;
    char slot[64];         /* of a schedule, or "" */
    bool fired, not_fired; /* as the supervisor says of that */
    bool misses_parent;
    uint64_t runs;                          /* a bit per attempt */
    unsigned n_runs, n_killed;              /* of them, how many workers were killed */
    usec_t submitted_at, told_at, began_at; /* 0 = not yet; the last run */
    usec_t run_since, end_by, saved_at;     /* by machine_ready_time(); USEC_INFINITY = never */
    usec_t pauses_until;
    unsigned pause_crash, save_crash; /* how many crashes of the supervisor there were then */
    unsigned saved, written;          /* attempts whose checkpoints are saved, and on disk */
};

/* Whether the date may have come: dates are rounded and converted. */
static inline bool model_has_come(usec_t date)
{
    return sim_now() + USEC_PER_MSEC >= date;
}

/* Returns the job's index, from 1 on. */
uint32_t model_add(struct model_job *job);
struct model_job *model_job(uint32_t index);

/* What happens in this seed, and what may then be otherwise. */
enum {
    MODEL_STOPS = 1,       /* an attempt that a stop has ended does not count */
    MODEL_DISK_FAULTS = 4, /* ends of durable jobs may wait, or not be told */
    MODEL_SLOTS_END = 2,   /* jobs of slots may end before their program has begun */
    /* A keeper starts with another wall clock: spans may be shorter, or begin anew. */
    MODEL_CLOCK = 8,
    MODEL_NO_SLOTS = 16, /* the clock is beyond the last slot when the schedule is first read */
    MODEL_REMOVES = 32,  /* jobs are cancelled with their group, or unknown as long as it is away */
};
extern unsigned model_allowed;
/* All but clients ended at once: which attempts had begun may not be known, and their numbers are
 * not used again. */
extern unsigned model_n_cuts;
/* When the last fault was, by machine_ready_time(); USEC_INFINITY = there may be more. */
extern usec_t model_calm_since;
/* The supervisor has died, or has made room for its successor. */
void model_supervisor_ends(bool crashes);
/* A worker has begun an attempt; it is still at work. */
void model_run(uint32_t index, unsigned attempt, bool right_payload);
void model_works(uint32_t index);
/* The attempt is about to be ended. */
void model_stops(uint32_t index);
/* The worker asks for another attempt after this time, and was heard. */
void model_pauses(uint32_t index, usec_t until);
/* It has saved a checkpoint; has found the one of an earlier attempt. */
void model_saved(uint32_t index);
void model_found(uint32_t index, unsigned number, bool right);
/* The client was told that it was refused, or with the error -EEXIST that another job, which ends,
 * takes its place; how it ended. */
void model_refused(uint32_t index, int error);
void model_ended(uint32_t index, const struct troupe_result *result, bool right_result);
/* The request to cancel it was accepted. */
void model_is_cancelled(uint32_t index);
/* The client lost the connection and does not know. */
void model_unknown(uint32_t index);

/* The job of each slot; set before any comes. */
extern struct model_job model_slot_job;
/* The job of a slot has this id: returns its index. The supervisor says what became of a slot. */
uint32_t model_slot(const char *id);
void model_slot_decided(const char *id, bool fired);

/* A message was heard, by a worker (0; each session talks to one) or a talker (from 1 on). Messages
 * of a sender are in order, and none comes twice unless its handler died. */
#define MODEL_HEARERS 4
void model_heard(uint32_t session, unsigned hearer, uint32_t number, bool again);
/* A timer's message has come, or will not. */
void model_timer(uint32_t session, uint32_t number, usec_t due);
void model_timer_cancelled(uint32_t session, uint32_t number);

/* Whether all accepted jobs have ended as far as a client was told. */
extern uint32_t model_n_open;
/* In the end. */
void model_judge(void);
