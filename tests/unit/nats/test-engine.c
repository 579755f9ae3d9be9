/* SPDX-License-Identifier: MIT */
#include "worker/nats/engine.h"

#include "tests/unit/suite.h"

/* As in engine.c. */
#define ARRIVED_MAX       65536u
#define ARRIVED_BYTES_MAX ((size_t)64 << 20)

static struct engine engine;

/* What libnats' threads call with messages of a stream. */
static struct {
    natsMsgHandler handler;
    void *userdata;
} messages;

/* In the place of that of libnats. What was subscribed to last are the messages. */
natsStatus natsConnection_Subscribe(natsSubscription **ret, natsConnection *connection,
                                    const char *subject, natsMsgHandler handler, void *userdata)
{
    messages.handler = handler;
    messages.userdata = userdata;
    return natsConnection_SubscribeSync(ret, connection, subject);
}

static void set_up(void)
{
    static char url[] = "tls://127.0.0.1:1";
    static const struct config config = {.url = url};

    ck_assert_int_eq(engine_init(&engine, &config), 0);
}

static void tear_down(void)
{
    engine_deinit(&engine);
}

static void bring(natsSubscription *from, unsigned n, size_t size)
{
    _cleanup_free_ char *data = calloc(1, size);

    for (unsigned i = 0; i < n; i++) {
        natsMsg *message;

        ck_assert_int_eq(natsMsg_Create(&message, "jobs.words.any", NULL, data, (int)size),
                         NATS_OK);
        messages.handler(NULL, from, message, messages.userdata);
    }
}

static unsigned take(void)
{
    struct pollfd fds[ENGINE_FDS];
    natsMsg *message;
    unsigned n = 0;

    engine_poll(&engine, fds);
    ck_assert_int_gt(poll(fds, ENGINE_FDS, 0), 0);
    engine_receive(&engine, fds);
    while ((message = engine_next(&engine))) {
        natsMsg_Destroy(message);
        n++;
    }
    return n;
}

TEST(only_so_many_messages_wait_for_the_main_loop)
{
    bring(engine.messages, ARRIVED_MAX + 1000, 10);
    ck_assert_uint_eq(take(), ARRIVED_MAX);
    bring(engine.messages, 10, 10);
    ck_assert_uint_eq(take(), 10);
}

TEST(only_so_many_bytes_wait_for_the_main_loop)
{
    const size_t size = (size_t)1 << 20;

    bring(engine.messages, 100, size);
    ck_assert_uint_eq(take(), ARRIVED_BYTES_MAX / size);
    bring(engine.messages, 10, size);
    ck_assert_uint_eq(take(), 10);
}

TEST(what_a_subscription_that_has_ended_brings_is_forgotten)
{
    natsSubscription *before = engine.messages;

    bring(before, 10, 10);
    engine_forget(&engine);
    bring(before, 10, 10);
    bring(engine.messages, 1, 10);
    ck_assert_uint_eq(take(), 1);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};
