/* SPDX-License-Identifier: MIT */
#include "supervisor/event/latency.h"

#include "supervisor/succession/saved-row.h"

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

void latency_put(struct saved_writer *row, const struct latency *latency)
{
    const size_t list = saved_begin(row);

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
        if (latency->counts[i] == 0)
            continue;
        saved_put_number(row, i);
        saved_put_number(row, latency->counts[i]);
    }
    saved_end(row, list);
}

void latency_get(struct saved_reader *row, struct latency *ret)
{
    struct saved_reader list = saved_get_fields(row);

    *ret = (struct latency){0};
    while (saved_has_more(&list)) {
        const uint64_t i = saved_get_below(&list, LATENCY_BUCKETS - 1);
        const uint64_t n = saved_get_below(&list, LATENCY_MAX_N - ret->n);

        ret->counts[i] = (uint16_t)(ret->counts[i] + n);
        ret->n += (uint32_t)n;
    }
}
