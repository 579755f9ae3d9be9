/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reproducible traffic for the stress tests. Record n of a seed always has the same kind, size and
 * bytes, so a consumer knows what comes next.
 */

#include "shared/ring/channel.h"
#include <stdbool.h>
#include <stdint.h>

/* The size of the n-th record of `seed`, at most `max` bytes. */
uint32_t traffic_size(uint64_t seed, uint64_t n, uint32_t max);
uint16_t traffic_kind(uint64_t n);
void traffic_fill(uint64_t seed, uint64_t n, void *body, uint32_t size);

/* Returns whether it is record n of `seed`. Prints the difference to standard error. */
bool traffic_check(uint64_t seed, uint64_t n, uint32_t max, const struct ring_record *record);

/* xorshift64*; the state must not be 0. */
uint32_t traffic_random(uint64_t *state, uint32_t bound);

/* Takes it from TROUPE_SEED, else from the clock, and prints it, so that a run can be repeated. */
uint64_t traffic_seed(void);

struct traffic {
    uint64_t seed;
    uint64_t count;
    uint32_t body_max;
    /* After so many records, each side makes the other wait; 0 = never. */
    uint32_t force_every;
};

struct traffic_tally {
    uint64_t sleeps; /* times the ring was empty, or full */
};

/* Each runs one side to the end. Returns 0, -errno from the channel, or -EILSEQ for a wrong record.
 */
int traffic_produce(struct channel *channel, const struct traffic *traffic,
                    struct traffic_tally *ret);
int traffic_consume(struct channel *channel, const struct traffic *traffic,
                    struct traffic_tally *ret);
