/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bounds how often periodic timers go off. A beat costs the supervisor a message, so the timers of
 * one owner together go off at most BEATS_PER_OWNER times a second, and those of all owners at most
 * BEATS_MAX times; an owner below BEATS_FAIR is never slowed down for the sake of the others.
 * Beyond that only every second, third, … beat of each of the owner's timers goes off.
 */

#include "shared/base/clock.h"
#include <stdint.h>

/* A second. */
#define BEATS_PER_OWNER 10000u
#define BEATS_FAIR      1000u
#define BEATS_MAX       50000u

/* Of one owner: what its timers ask for, in beats per BEATS_SPAN. */
struct beats {
    uint64_t wanted;
};

/* Of all owners: what they ask for, as far as each may have it. */
struct beats_total {
    uint64_t granted;
};

void beats_add(struct beats_total *total, struct beats *beats, usec_t period);
void beats_remove(struct beats_total *total, struct beats *beats, usec_t period);

/* The owner is gone: what it asked for is not counted any more. */
void beats_forget(struct beats_total *total, struct beats *beats);

/* One in so many beats of each of the owner's timers goes off: 1 = every one. */
uint64_t beats_stride(const struct beats_total *total, const struct beats *beats);
