/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/endpoint-stock.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

#define RING_SIZE 16384

static struct loop *loop;
static struct endpoint_stock stock;
static struct endpoint_options options;

static void setup(void)
{
    loop = new_loop();
    endpoint_stock_init(&stock, loop);
    options =
        (struct endpoint_options){.ring_size = RING_SIZE, .inline_max = 1024, .stock = &stock};
}

static void teardown(void)
{
    endpoint_stock_deinit(&stock);
    loop_free(loop);
}

static struct endpoint_parts take(void)
{
    struct endpoint_parts parts;

    ck_assert_int_eq(endpoint_stock_take(&parts, loop, &options), 0);
    ck_assert_int_ge(fcntl(parts.fds.channel.inbox, F_GETFD), 0);
    ck_assert_int_ge(fcntl(parts.fds.control, F_GETFD), 0);
    return parts;
}

static void let_go(struct endpoint_parts parts)
{
    channel_deinit(&parts.channel);
    close_fd(parts.control);
    close_fd(parts.fds.control);
}

static void on_end(struct loop_deferred *deferred)
{
    loop_stop(loop);
}

/* What was deferred first runs first. */
static void fill(void)
{
    struct loop_deferred end;

    endpoint_stock_fill(&options);
    loop_deferred_init(&end, on_end);
    loop_defer(loop, &end);
    ck_assert_int_eq(loop_run(loop), 0);
}

TEST(what_it_was_filled_with_is_taken_once)
{
    fill();
    fill();
    const struct memory_header *ready = stock.parts.channel.mine.header;
    struct endpoint_parts parts = take();
    ck_assert_ptr_eq(parts.channel.mine.header, ready);
    ck_assert(!stock.filled);
    let_go(take());
    let_go(parts);
}

TEST(parts_for_another_configuration_are_made_anew)
{
    fill();
    options.ring_size = 2 * RING_SIZE;
    struct endpoint_parts parts = take();
    ck_assert_uint_eq(parts.channel.mine.header->ring_size, 2 * RING_SIZE);
    ck_assert(!stock.filled);
    let_go(parts);
}

TEST(parts_that_could_not_be_made_ahead_are_made_when_they_are_needed)
{
    options.ring_size = 1;
    fill();
    ck_assert(!stock.filled);
    options.ring_size = RING_SIZE;
    let_go(take());
}

TEST(without_a_stock_they_are_made_at_once)
{
    options.stock = NULL;
    let_go(take());
}

const struct suite suite = {.setup = setup, .teardown = teardown};
