/* SPDX-License-Identifier: MIT */
#pragma once

/* What becomes of an order: a code, its properties, and messages that say when what was done. */

#include "worker/examples/provision/order.h"
#include "worker/examples/provision/provision.h"
#include "worker/troupe.h"

struct outcome {
    enum provision_code code;
    json_t *messages; /* an array of {"at", "text"}; NULL = out of memory */
};

void outcome_init(struct outcome *outcome);
void outcome_deinit(struct outcome *outcome);

/* Adds a message with the time of day. */
void outcome_say(struct outcome *outcome, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Like outcome_say(); and the order has failed, unless it had before. */
void outcome_fail(struct outcome *outcome, enum provision_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends the job. As troupe_job_succeed(); -ENOMEM, the job is not ended then. */
int outcome_end(const struct outcome *outcome, const struct order *order, struct troupe_job *job);
