/* SPDX-License-Identifier: MIT */
#pragma once

/* What the world promises: notes what happens to each job, and judges. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

/* What a job is to do, as its payload says. */
enum model_kind {
    MODEL_SUCCEED,
    MODEL_REJECT,
    MODEL_RETRY, /* until its attempts are used up */
    MODEL_SLOW,
    MODEL_CRASH,   /* the worker dies */
    MODEL_HANG,    /* beyond the time limit of an attempt */
    MODEL_ENDLESS, /* until it is cancelled */
    _MODEL_N_KINDS,
};

/* MaxRetries= of the groups, and one; TimeoutSec=. */
#define MODEL_ATTEMPTS 3
#define MODEL_LIMIT    (4 * USEC_PER_SEC)

/* What a group promises, as its file says; the second one is durable. */
struct model_group {
    unsigned running, rate; /* at the same time; per second; 0 = no limit */
    bool running_per_key, rate_per_key;
    bool until_start; /* UniqueUntil= */
};
extern struct model_group model_groups[2];

/* Unique keys are numbers: what happens in a conflict, or that of all slots. */
#define MODEL_N_UNIQUE    5
#define MODEL_UNIQUE_SLOT MODEL_N_UNIQUE

struct model_job {
    uint32_t kind;
    bool durable;           /* the group */
    uint8_t key, unique;    /* numbers; unique: 0 = it has none */
    usec_t delay, deadline; /* spans; 0 = none */
};

/* Returns the job's index. */
uint32_t model_add(const struct model_job *job);
const struct model_job *model_job(uint32_t index);

/* What happens in this seed, and what may then be otherwise. */
enum {
    MODEL_STOPS = 1,       /* an attempt that a stop has ended does not count */
    MODEL_DISK_FAULTS = 4, /* ends of durable jobs may wait, or not be told */
    MODEL_SLOTS_END = 2,   /* jobs of slots may end before their program has begun */
    MODEL_CLOCK = 8,       /* a keeper starts with another wall clock: spans may be shorter */
};
void model_allow(unsigned what);
bool model_allows(unsigned what);
/* All but clients ended at once: which attempts had begun may not be known, and their numbers are
 * not used again. */
void model_cut(void);
/* The supervisor has died, or has made room for its successor. */
void model_supervisor_ends(bool crashes);
/* A worker has begun an attempt; it is still at work. */
void model_run(uint32_t index, unsigned attempt, bool right_payload);
void model_works(uint32_t index);
/* The attempt is about to be ended. */
void model_stops(uint32_t index);
/* The worker asks for another attempt after this time, and was heard. */
void model_pauses(uint32_t index, usec_t until);
/* It is about to save a checkpoint; has saved it; has found the one of an earlier attempt. */
void model_saves(uint32_t index, unsigned number);
void model_saved(uint32_t index);
void model_found(uint32_t index, unsigned number, bool right);
/* The client was told that its job may have been accepted or not. Returns whether to ask for it by
 * its id, again and again. */
bool model_unsure(uint32_t index);
bool model_is_unsure(uint32_t index);
/* The client was told that it was refused, or with the error -EEXIST that another job, which ends,
 * takes its place; how it ended. */
void model_refused(uint32_t index, int error);
void model_ended(uint32_t index, int end, unsigned attempts, bool right_result);
/* Its cancellation is about to be requested; the request was accepted. */
void model_may_be_cancelled(uint32_t index);
void model_is_cancelled(uint32_t index);
/* The client lost the connection and does not know. */
void model_unknown(uint32_t index);

/* The job of each slot; set before any comes. */
extern struct model_job model_slot_job;
/* The job of a slot has this id: returns its index. The supervisor says what became of a slot. */
uint32_t model_slot(const char *id);
void model_slot_decided(const char *id, bool fired);
/* It has counted so many outcomes, of so many slots. */
void model_slots_counted(uint64_t n, uint64_t expected);

/* A message was heard, by a worker (0; each session talks to one) or a talker (from 1 on). Messages
 * of a sender are in order, and none comes twice unless its handler died. */
#define MODEL_HEARERS 4
void model_heard(uint32_t session, unsigned hearer, uint32_t number, bool again);
/* A timer's message has come, or will not. */
void model_timer(uint32_t session, uint32_t number, usec_t due);
void model_timer_cancelled(uint32_t session, uint32_t number);

/* Another promise was broken. */
void model_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether all accepted jobs have ended as far as a client was told. */
uint32_t model_n_open(void);
/* Prints what is wrong. Returns the number of faults. */
unsigned model_judge(void);
