/* SPDX-License-Identifier: MIT */
#include "shared/ring/ring.h"
#include "tests/unit/suite.h"

#define SIZE 128u /* bodies of up to 56 bytes */
#define KIND 7

/* A ring whose two sides are both at hand, and whose shared words can be scribbled over. */
struct pair {
    _Alignas(8) uint8_t data[SIZE];
    _Atomic uint32_t tail, head;
    struct ring_producer producer;
    struct ring_consumer consumer;
};

static struct pair pair;

static void start_at(uint32_t cursor)
{
    memset(pair.data, 0xee, sizeof(pair.data));
    pair.tail = pair.head = cursor;
    ck_assert_int_eq(ring_producer_init(&pair.producer, pair.data, SIZE, &pair.tail, &pair.head),
                     0);
    ck_assert_int_eq(ring_consumer_init(&pair.consumer, pair.data, SIZE, &pair.head, &pair.tail),
                     0);
}

static void setup(void)
{
    start_at(0);
}

/* Commits a body of `size` bytes, all `fill`. */
static int put(uint32_t size, char fill)
{
    void *body;
    int r = ring_reserve(&pair.producer, size, &body);

    if (r != 0)
        return r;
    memset(body, fill, size);
    ring_commit(&pair.producer, KIND, size);
    return 0;
}

static void put_and_publish(uint32_t size, char fill)
{
    ck_assert_int_eq(put(size, fill), 0);
    ck_assert(ring_publish(&pair.producer));
}

static void expect(uint32_t size, char fill)
{
    struct ring_record record;

    ck_assert_int_eq(ring_next(&pair.consumer, &record), 0);
    ck_assert_uint_eq(record.kind, KIND);
    ck_assert_uint_eq(record.size, size);
    for (uint32_t i = 0; i < size; i++)
        ck_assert_int_eq(((const char *)record.body)[i], fill);
}

static void expect_next(int result)
{
    struct ring_record record;

    ck_assert_int_eq(ring_next(&pair.consumer, &record), result);
}

/* What a hostile producer does: a header at `position`, and the cursor wherever it likes. */
static void forge(uint32_t position, struct ring_header header, uint32_t tail)
{
    memcpy(pair.data + position, &header, sizeof(header));
    pair.tail = tail;
}

TEST(a_record_that_ends_with_the_ring_needs_no_padding)
{
    put_and_publish(56, 'a');
    put_and_publish(56, 'b');
    ck_assert_uint_eq(pair.tail, SIZE);
    expect(56, 'a');
    expect(56, 'b');
    expect_next(RING_E_EMPTY);
}

TEST(a_commit_after_a_full_ring_is_not_mistaken_for_the_old_reserve, .signal = SIGABRT)
{
    void *body;

    put_and_publish(56, 'a');
    ck_assert_int_eq(put(40, 'b'), 0);
    ck_assert_int_eq(ring_reserve(&pair.producer, 0, &body), 0);
    ck_assert_int_eq(ring_reserve(&pair.producer, 56, &body), RING_E_FULL);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr)); /* nobody needs to read this one */
    ring_commit(&pair.producer, KIND, 0);                     /* asserts: nothing is reserved */
}

TEST(a_body_above_the_largest_is_refused_for_good)
{
    ck_assert_int_eq(put(ring_body_max(SIZE) + 1, 'x'), -EMSGSIZE);
    ck_assert_int_eq(put(UINT32_MAX, 'x'), -EMSGSIZE);
    ck_assert_int_eq(put(UINT32_MAX - 6, 'x'), -EMSGSIZE);
}

TEST(nobody_takes_up_a_ring_with_impossible_cursors)
{
    static const uint32_t tails[] = {SIZE + 8, UINT32_MAX - 7, 4, 1};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        pair.tail = tails[i];
        pair.head = 0;
        ck_assert_int_eq(
            ring_producer_init(&pair.producer, pair.data, SIZE, &pair.tail, &pair.head), -EPROTO);
        ck_assert_int_eq(
            ring_consumer_init(&pair.consumer, pair.data, SIZE, &pair.head, &pair.tail), -EPROTO);
    }
}

TEST(a_cursor_beyond_the_ring_is_a_breach)
{
    pair.tail = SIZE + 8;
    ck_assert(ring_pending(&pair.consumer));
    expect_next(-EPROTO);
}

TEST(a_cursor_that_went_backwards_is_a_breach)
{
    put_and_publish(8, 'a');
    expect(8, 'a');
    pair.tail = 8;
    expect_next(-EPROTO);
}

TEST(a_cursor_that_is_not_aligned_is_a_breach)
{
    for (uint32_t off = 1; off < 8; off++) {
        forge(0, (struct ring_header){.size = 8, .kind = KIND}, 16 + off);
        expect_next(-EPROTO);
    }
}

TEST(a_producer_that_overruns_what_was_not_released_is_found_out)
{
    put_and_publish(56, 'a');
    expect(56, 'a');
    /* 64 bytes are still ours: a full ring's worth on top of them is 64 too many. */
    forge(64, (struct ring_header){.size = 56, .kind = KIND}, 64 + SIZE);
    expect_next(-EPROTO);
    ck_assert(ring_release(&pair.consumer));
    expect_next(0);
}

TEST(a_record_past_the_published_end_is_a_breach)
{
    forge(0, (struct ring_header){.size = 9, .kind = KIND}, 16);
    expect_next(-EPROTO);
    forge(0, (struct ring_header){.size = 8, .kind = KIND}, 16);
    expect_next(0);
}

TEST(a_record_across_the_end_of_the_ring_is_a_breach)
{
    start_at(SIZE - 16);
    forge(SIZE - 16, (struct ring_header){.size = 16, .kind = KIND}, SIZE + 64);
    expect_next(-EPROTO);
}

TEST(wild_lengths_are_breaches)
{
    const uint32_t sizes[] = {ring_body_max(SIZE) + 1, SIZE,           INT32_MAX,
                              UINT32_MAX - 14,         UINT32_MAX - 7, UINT32_MAX};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        forge(0, (struct ring_header){.size = sizes[i], .kind = KIND}, SIZE);
        expect_next(-EPROTO);
    }
}

TEST(a_reserved_field_that_is_not_zero_is_a_breach)
{
    forge(0, (struct ring_header){.size = 8, .kind = KIND, .reserved = 1}, 16);
    expect_next(-EPROTO);
}

TEST(padding_that_does_not_close_the_ring_exactly_is_a_breach)
{
    static const struct ring_header bad[] = {
        {.size = 16}, /* stops before the end */
        {.size = 32}, /* goes past it */
        {.size = 24, .reserved = 1},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        start_at(SIZE - 32);
        forge(SIZE - 32, bad[i], SIZE);
        expect_next(-EPROTO);
    }
    start_at(SIZE - 32);
    forge(SIZE - 32, (struct ring_header){.size = 24}, SIZE);
    expect_next(RING_E_EMPTY);
}

TEST(padding_past_the_published_end_is_a_breach)
{
    start_at(SIZE - 32);
    forge(0, (struct ring_header){.size = 8, .kind = KIND}, 0);
    forge(SIZE - 32, (struct ring_header){.size = 24}, SIZE - 8);
    expect_next(-EPROTO);
}

TEST(padding_of_half_a_ring_or_more_is_a_breach)
{
    forge(0, (struct ring_header){.size = SIZE - 8}, SIZE);
    expect_next(-EPROTO);
    start_at(SIZE / 2);
    forge(SIZE / 2, (struct ring_header){.size = SIZE / 2 - 8}, SIZE);
    expect_next(-EPROTO);
}

TEST(a_consumer_that_claims_more_than_it_was_shown_is_found_out)
{
    static const uint32_t heads[] = {136, 72, 4, UINT32_MAX - 7};

    put_and_publish(56, 'a');
    ck_assert_int_eq(put(40, 'b'), 0); /* not published: nobody can have read it */
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        pair.head = heads[i];
        ck_assert_int_eq(put(56, 'x'), -EPROTO);
    }
    pair.head = 64;
    ck_assert_int_eq(put(56, 'c'), 0);
    ck_assert_int_eq(put(0, 'x'), RING_E_FULL);
}

TEST(a_consumer_whose_cursor_goes_backwards_is_found_out)
{
    put_and_publish(56, 'a');
    put_and_publish(56, 'b');
    expect(56, 'a');
    ck_assert(ring_release(&pair.consumer));
    put_and_publish(56, 'c');
    pair.head = 0;
    ck_assert_int_eq(put(0, 'x'), -EPROTO);
}

TEST(what_the_peer_scribbles_over_our_own_cursor_is_never_read_back)
{
    put_and_publish(8, 'a');
    pair.head = 0xdead;
    expect(8, 'a');
    ck_assert(ring_release(&pair.consumer));
    ck_assert_uint_eq(pair.head, 16);
    pair.tail = 0xdead;
    put_and_publish(8, 'b');
    ck_assert_uint_eq(pair.tail, 32);
}

const struct suite suite = {.setup = setup};
