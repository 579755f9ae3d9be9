/* SPDX-License-Identifier: MIT */
#include "supervisor/message/schedule/beats.h"

/* A span that is long enough to count the beats of a timer with a period of a few minutes. */
#define BEATS_SPAN (1000 * USEC_PER_SEC)

#define PER_SPAN(per_second) ((uint64_t)(per_second) * (BEATS_SPAN / USEC_PER_SEC))

static uint64_t granted_of(const struct beats *beats)
{
    const uint64_t max = PER_SPAN(BEATS_PER_OWNER);

    return beats->wanted < max ? beats->wanted : max;
}

static void set_wanted(struct beats_total *total, struct beats *beats, uint64_t wanted)
{
    total->granted -= granted_of(beats);
    beats->wanted = wanted;
    total->granted += granted_of(beats);
}

void beats_add(struct beats_total *total, struct beats *beats, usec_t period)
{
    set_wanted(total, beats, beats->wanted + BEATS_SPAN / period);
}

void beats_remove(struct beats_total *total, struct beats *beats, usec_t period)
{
    set_wanted(total, beats, beats->wanted - BEATS_SPAN / period);
}

void beats_forget(struct beats_total *total, struct beats *beats)
{
    set_wanted(total, beats, 0);
}

/* `value` / `max`, rounded up, at least 1. */
static uint64_t times(uint64_t value, uint64_t max)
{
    return value <= max ? 1 : (value + max - 1) / max;
}

uint64_t beats_stride(const struct beats_total *total, const struct beats *beats)
{
    const uint64_t share = PER_SPAN(BEATS_PER_OWNER) / times(total->granted, PER_SPAN(BEATS_MAX));
    const uint64_t fair = PER_SPAN(BEATS_FAIR);

    return times(beats->wanted, share > fair ? share : fair);
}
