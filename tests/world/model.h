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

struct model_job {
    uint32_t kind;
    bool durable;
    usec_t delay, deadline; /* spans; 0 = none */
};

/* Returns the job's index. */
uint32_t model_add(const struct model_job *job);
const struct model_job *model_job(uint32_t index);

/* What happens in this seed, and what may then be otherwise. */
enum {
    MODEL_STOPS = 1,       /* an attempt that a stop has ended does not count */
    MODEL_DISK_FAULTS = 4, /* ends of durable jobs may wait, or not be told */
    MODEL_CLOCK = 8,       /* a keeper starts with another wall clock: spans may be shorter */
};
void model_allow(unsigned what);
/* All but clients ended at once: which attempts had begun may not be known, and their numbers are
 * not used again. */
void model_cut(void);
/* A worker has begun an attempt; it is still at work. */
void model_run(uint32_t index, unsigned attempt, bool right_payload);
void model_works(uint32_t index);
/* The client was told that its job may have been accepted or not. Returns whether to ask for it by
 * its id, again and again. */
bool model_unsure(uint32_t index);
bool model_is_unsure(uint32_t index);
/* The client was told that it was refused; how it ended. */
void model_refused(uint32_t index, int error);
void model_ended(uint32_t index, int end, unsigned attempts, bool right_result);
/* Its cancellation is about to be requested; the request was accepted. */
void model_may_be_cancelled(uint32_t index);
void model_is_cancelled(uint32_t index);
/* The client lost the connection and does not know. */
void model_unknown(uint32_t index);

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
