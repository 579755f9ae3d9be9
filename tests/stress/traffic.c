/* SPDX-License-Identifier: MIT */
#include "tests/stress/traffic.h"
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any wait for a live peer. */
#define PATIENCE (60 * USEC_PER_SEC)

/* The finaliser of splitmix64 (G. Steele, D. Lea, C. Flood, 2014): a hash of seed and position. */
static uint64_t mix(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t traffic_random(uint64_t *state, uint32_t bound)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(((*state * UINT64_C(2685821657736338717)) >> 32) % bound);
}

uint64_t traffic_seed(void)
{
    const char *fixed = getenv("TROUPE_SEED");
    uint64_t seed = fixed ? strtoull(fixed, NULL, 0) : clock_realtime();

    printf("TROUPE_SEED=%llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
    return seed;
}

/* Mostly short; one in eight has any length, one in 32 the maximum. */
uint32_t traffic_size(uint64_t seed, uint64_t n, uint32_t max)
{
    uint64_t dice = mix(seed, n);
    uint32_t size = (uint32_t)(dice >> 32);

    if (dice % 32 == 0)
        return max - size % 9;
    if (dice % 8 == 0)
        return size % (max + 1);
    return size % (max < 80 ? max + 1 : 80);
}

uint16_t traffic_kind(uint64_t n)
{
    return (uint16_t)(1 + n % UINT16_MAX);
}

void traffic_fill(uint64_t seed, uint64_t n, void *body, uint32_t size)
{
    uint64_t word = mix(~seed, n);
    uint8_t *at = body;

    for (; size >= sizeof(word); size -= (uint32_t)sizeof(word), at += sizeof(word), word += n | 1)
        memcpy(at, &word, sizeof(word));
    memcpy(at, &word, size);
}

bool traffic_check(uint64_t seed, uint64_t n, uint32_t max, const struct ring_record *record)
{
    uint32_t size = traffic_size(seed, n, max);
    uint8_t expected[16384];

    if (record->kind != traffic_kind(n) || record->size != size || size > sizeof(expected)) {
        fprintf(stderr, "record %llu: kind %u instead of %u, %u bytes instead of %u\n",
                (unsigned long long)n, record->kind, traffic_kind(n), record->size, size);
        return false;
    }
    traffic_fill(seed, n, expected, size);
    if (memcmp(expected, record->body, size) != 0) {
        fprintf(stderr, "record %llu: wrong bytes\n", (unsigned long long)n);
        return false;
    }
    return true;
}

/* Waits until the peer raises its flag. The callers make sure that it does. */
static void wait_for_flag(const _Atomic uint32_t *flag)
{
    while (atomic_load_explicit(flag, memory_order_relaxed) == 0)
        (void)sched_yield();
}

int traffic_produce(struct channel *channel, const struct traffic *traffic,
                    struct traffic_tally *ret)
{
    uint64_t dice = traffic->seed | 1;

    for (uint64_t n = 0; n < traffic->count; n++) {
        uint32_t size = traffic_size(traffic->seed, n, traffic->body_max);
        void *body;
        int r;

        if (traffic->force_every > 0 && n % traffic->force_every == 0) {
            /* Everything is published: the consumer empties the ring and sleeps. */
            channel_publish(channel);
            wait_for_flag(&channel->their_words->sleeping);
        }
        while ((r = ring_reserve(&channel->out, size, &body)) == RING_E_FULL) {
            ret->sleeps++;
            r = channel_wait_space(channel, size, PATIENCE);
            if (r < 0)
                return r;
        }
        if (r < 0)
            return r;
        traffic_fill(traffic->seed, n, body, size);
        ring_commit(&channel->out, traffic_kind(n), size);
        if (traffic_random(&dice, 4) == 0)
            channel_publish(channel);
    }
    channel_publish(channel);
    return 0;
}

int traffic_consume(struct channel *channel, const struct traffic *traffic,
                    struct traffic_tally *ret)
{
    uint64_t dice = traffic->seed | 1;

    for (uint64_t n = 0; n < traffic->count; n++) {
        struct ring_record record;
        int r;

        if (traffic->force_every > 0 && n % traffic->force_every == traffic->force_every / 2) {
            /* The ring holds less than half a period's records: the producer fills it and waits. */
            wait_for_flag(&channel->their_words->blocked);
        }
        while ((r = ring_next(&channel->in, &record)) == RING_E_EMPTY) {
            channel_release(channel);
            ret->sleeps++;
            r = channel_wait(channel, PATIENCE);
            if (r < 0)
                return r;
        }
        if (r < 0)
            return r;
        if (!traffic_check(traffic->seed, n, traffic->body_max, &record))
            return -EILSEQ;
        if (traffic_random(&dice, 4) == 0)
            channel_release(channel);
    }
    channel_release(channel);
    return 0;
}
