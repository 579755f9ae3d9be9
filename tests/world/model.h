/* SPDX-License-Identifier: MIT */
#pragma once

/* What the world promises: notes what happens to each job, and judges. */

#include <stdbool.h>
#include <stdint.h>

/* What a job is to do, as its payload says. */
enum model_kind {
    MODEL_SUCCEED,
    MODEL_REJECT,
    MODEL_RETRY, /* until its attempts are used up */
    MODEL_SLOW,
    _MODEL_N_KINDS,
};

struct model_job {
    uint32_t client, number;
    uint32_t kind;
    bool durable;
};

/* Returns the job's index. */
uint32_t model_add(const struct model_job *job);
const struct model_job *model_job(uint32_t index);

/* Somebody may stop groups: an attempt that a stop has ended does not count. */
void model_allow_stops(void);
/* A worker has begun an attempt. */
void model_run(uint32_t index, unsigned attempt);
/* The client was told that it was refused; how it ended. */
void model_refused(uint32_t index, int error);
void model_ended(uint32_t index, int end, unsigned attempts, bool right_result);
/* Somebody is about to ask for its cancellation. */
void model_may_be_cancelled(uint32_t index);
/* The client lost the connection and does not know. */
void model_unknown(uint32_t index);

/* Whether all accepted jobs have ended as far as a client was told. */
uint32_t model_n_open(void);
/* Prints what is wrong. Returns the number of faults. */
unsigned model_judge(void);
