/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bounds how often periodic timers fire, since each beat costs the supervisor a message. The timers
 * of one setter together fire at most BEATS_PER_OWNER times a second, those of all setters at most
 * BEATS_MAX times. Beyond that, each timer of the setter fires at every second, third, … beat only.
 * A setter below BEATS_FAIR is never slowed down because of the others.
 */

#include "shared/base/clock.h"
#include <stdint.h>

/* Per second. */
#define BEATS_PER_OWNER 10000u
#define BEATS_FAIR      1000u
#define BEATS_MAX       50000u

/* The beats of the timers of one setter, per BEATS_SPAN. */
struct beats {
    uint64_t wanted;
};

/* The sum over all setters, each up to BEATS_PER_OWNER. */
struct beats_total {
    uint64_t granted;
};

void beats_add(struct beats_total *total, struct beats *beats, usec_t period);
void beats_remove(struct beats_total *total, struct beats *beats, usec_t period);
/* Removes a setter that is gone. */
void beats_forget(struct beats_total *total, struct beats *beats);

/* Returns N: one in N beats of each of the setter's timers fires. */
uint64_t beats_stride(const struct beats_total *total, const struct beats *beats);
