/* SPDX-License-Identifier: MIT */
#include "supervisor/event/latency.h"

#include "supervisor/succession/record.h"

/* 0 … 7 µs have a bucket each; then every power of two has eight. */
static unsigned bucket_of(usec_t took)
{
    unsigned shift, bucket;

    if (took < LATENCY_STEPS)
        return (unsigned)took;
    shift = 60 - (unsigned)__builtin_clzll(took);
    bucket = LATENCY_STEPS * shift + (unsigned)(took >> shift);
    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* Returns the highest value of a bucket. */
static usec_t end_of(unsigned bucket)
{
    unsigned shift;

    if (bucket < 2 * LATENCY_STEPS)
        return bucket;
    shift = bucket / LATENCY_STEPS - 1;
    return ((usec_t)(bucket - LATENCY_STEPS * shift + 1) << shift) - 1;
}

static void forget_half(struct latency *latency)
{
    latency->n = 0;
    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        latency->counts[i] /= 2;
        latency->n += latency->counts[i];
    }
}

void latency_add(struct latency *latency, usec_t took)
{
    if (latency->n >= LATENCY_MAX_N)
        forget_half(latency);
    latency->counts[bucket_of(took)]++;
    latency->n++;
}

usec_t latency_percentile(const struct latency *latency, unsigned percent)
{
    uint32_t wanted = (latency->n * percent + 99) / 100, seen = 0;

    for (unsigned i = 0; i < LATENCY_BUCKETS && latency->n > 0; i++) {
        seen += latency->counts[i];
        if (seen >= wanted)
            return end_of(i);
    }
    return 0;
}

#define ROW latency
#define LATENCY_FIELDS(F)                                                                          \
    F(UPGRADE, counts, ARRAY(counts))                                                              \
    F(UPGRADE, n, BELOW(n, LATENCY_MAX_N))
const struct record LATENCY_RECORD = RECORD("latency", LATENCY_FIELDS);

#undef ROW

#define ROW histogram
#define HISTOGRAM_FIELDS(F)                                                                        \
    F(UPGRADE, counts, ARRAY(counts))                                                              \
    F(UPGRADE, sum, NUMBER(sum))
const struct record HISTOGRAM_RECORD = RECORD("histogram", HISTOGRAM_FIELDS);
