/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reproducible traffic for the stress tests: record n of a seed always has the same kind, size and
 * bytes, so a consumer knows what must come next without being told.
 */

#include "shared/ring/channel.h"
#include <stdbool.h>
#include <stdint.h>

/* The n-th record of `seed`; a body of at most `max` bytes. */
uint32_t traffic_size(uint64_t seed, uint64_t n, uint32_t max);
uint16_t traffic_kind(uint64_t n);
void traffic_fill(uint64_t seed, uint64_t n, void *body, uint32_t size);

/* Whether it is record n of `seed`; says on standard error what is wrong with it. */
bool traffic_check(uint64_t seed, uint64_t n, uint32_t max, const struct ring_record *record);

/* xorshift64*; the state must not be 0. */
uint32_t traffic_random(uint64_t *state, uint32_t bound);

/* From TROUPE_SEED, else from the clock; printed, so that a run can be repeated. */
uint64_t traffic_seed(void);

struct traffic {
    uint64_t seed;
    uint64_t count;
    uint32_t body_max;
    /* Each so many records, producer and consumer let the other side run dry or full; 0 = never. */
    uint32_t force_every;
};

struct traffic_tally {
    uint64_t sleeps; /* times the ring was found empty, or full */
};

/* One side each, to the end. 0, or -errno as from the channel; -EILSEQ for a wrong record. */
int traffic_produce(struct channel *channel, const struct traffic *traffic,
                    struct traffic_tally *ret);
int traffic_consume(struct channel *channel, const struct traffic *traffic,
                    struct traffic_tally *ret);
