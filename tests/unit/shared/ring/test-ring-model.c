/* SPDX-License-Identifier: MIT */

/*
 * The ring against a model: a queue of byte strings with three marks (read, published, committed).
 * Random steps are applied to both; whatever the ring hands out must be what the model has next.
 * The seed is printed; TROUPE_SEED=N repeats a run.
 */

#include "shared/ring/ring.h"
#include "tests/unit/suite.h"

#define QUEUE_MAX 4096 /* more records than the largest ring here can hold */
#define BODY_MAX  1024
#define STEPS     20000
#define ROUNDS    60

struct string {
    uint16_t kind;
    uint32_t size;
    uint8_t bytes[BODY_MAX];
};

/* Positions count records since the beginning: released <= read <= published <= committed. */
struct model {
    struct string queue[QUEUE_MAX];
    unsigned released, read, published, committed;
};

static _Alignas(8) uint8_t data[2048];
static _Atomic uint32_t tail, head;
static struct ring_producer producer;
static struct ring_consumer consumer;
static struct model model;
static uint64_t seed, state;

/* xorshift64*, S. Vigna, "An experimental exploration of Marsaglia's xorshift generators" (2014).
 */
static uint32_t random_below(uint32_t bound)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)(((state * UINT64_C(2685821657736338717)) >> 32) % bound);
}

static struct string *at(unsigned position)
{
    return &model.queue[position % QUEUE_MAX];
}

static uint32_t random_size(uint32_t max)
{
    switch (random_below(4)) {
    case 0:
        return max - random_below(max < 9 ? max : 9);
    case 1:
        return random_below(max + 1);
    default:
        return random_below(max < 40 ? max + 1 : 40);
    }
}

static void step_commit(void)
{
    struct string *string = at(model.committed);
    uint32_t reserved = random_size(ring_body_max(producer.size));
    void *body;

    int r = ring_reserve(&producer, reserved, &body);
    if (r == RING_E_FULL) {
        /* Full is only said when something is in the way. */
        ck_assert_uint_ne(model.committed, model.released);
        return;
    }
    ck_assert_int_eq(r, 0);
    if (random_below(8) == 0)
        return; /* reserved and forgotten */
    ck_assert_uint_lt(model.committed - model.released, QUEUE_MAX);
    string->size = random_below(4) == 0 ? random_below(reserved + 1) : reserved;
    string->kind = (uint16_t)(1 + random_below(UINT16_MAX));
    for (uint32_t i = 0; i < string->size; i++)
        string->bytes[i] = (uint8_t)random_below(256);
    memset(body, 0xaa, reserved);
    if (string->size > 0)
        memcpy(body, string->bytes, string->size);
    ring_commit(&producer, string->kind, string->size);
    model.committed++;
}

static void step_publish(void)
{
    ck_assert_int_eq(ring_publish(&producer), model.published != model.committed);
    model.published = model.committed;
}

static void step_next(void)
{
    struct string *string = at(model.read);
    struct ring_record record;
    int r = ring_next(&consumer, &record);

    if (model.read == model.published) {
        ck_assert_int_eq(r, RING_E_EMPTY);
        ck_assert(!ring_pending(&consumer));
        return;
    }
    ck_assert_int_eq(r, 0);
    ck_assert_uint_eq(record.kind, string->kind);
    ck_assert_uint_eq(record.size, string->size);
    ck_assert_mem_eq(record.body, string->bytes, string->size);
    model.read++;
}

static void step_release(void)
{
    ck_assert_int_eq(ring_release(&consumer), model.released != model.read);
    model.released = model.read;
}

/* The producer is replaced: what it had not published is gone. */
static void step_producer_dies(void)
{
    ck_assert_int_eq(ring_producer_init(&producer, data, producer.size, &tail, &head), 0);
    model.committed = model.published;
}

/* The consumer is replaced: what it had not released comes again. */
static void step_consumer_dies(void)
{
    ck_assert_int_eq(ring_consumer_init(&consumer, data, consumer.size, &head, &tail), 0);
    model.read = model.released;
}

static void step(void)
{
    uint32_t dice = random_below(1000);

    if (dice < 400)
        step_commit();
    else if (dice < 550)
        step_publish();
    else if (dice < 850)
        step_next();
    else if (dice < 996)
        step_release();
    else if (dice < 998)
        step_producer_dies();
    else
        step_consumer_dies();
}

/* Once for all rounds, which are processes. */
__attribute__((constructor)) static void choose_seed(void)
{
    const char *fixed = getenv("TROUPE_SEED");

    seed = fixed ? strtoull(fixed, NULL, 0) : (uint64_t)time(NULL);
    printf("TROUPE_SEED=%llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
}

TEST(the_ring_behaves_as_a_queue_of_strings, .n = ROUNDS)
{
    state = seed + (uint64_t)_i * UINT64_C(0x9e3779b97f4a7c15);
    if (state == 0)
        state = 1;
    uint32_t size = 64u << random_below(6);
    /* Half of the rounds pass 2^32. */
    uint32_t start = random_below(2) ? 0 - 8 * random_below(4096) : 8 * random_below(1u << 28);
    memset(&model, 0, sizeof(model));
    tail = head = start;
    ck_assert_int_eq(ring_producer_init(&producer, data, size, &tail, &head), 0);
    ck_assert_int_eq(ring_consumer_init(&consumer, data, size, &head, &tail), 0);
    for (unsigned i = 0; i < STEPS; i++)
        step();
    ck_assert_uint_gt(model.released, STEPS / 100);
}
