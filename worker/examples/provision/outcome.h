/* SPDX-License-Identifier: MIT */
#pragma once

/* The outcome of an order: a code, its properties, and messages about each action with its time. */

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

/* Like outcome_say(), but also makes the order fail, unless it has already failed. */
void outcome_fail(struct outcome *outcome, enum provision_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends the job. Returns like troupe_job_succeed(); after -ENOMEM the job has not ended. */
int outcome_end(const struct outcome *outcome, const struct order *order, struct troupe_job *job);
