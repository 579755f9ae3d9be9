/* SPDX-License-Identifier: MIT */
#include "worker/troupe.h"
#include <sched.h>
#include <sys/resource.h>

#include "tests/unit/fake-sender.h"
#include "tests/unit/suite.h"

#define PEER 100u /* whom the worker under test asks */
#define SELF 7u

/* ---- allocations, some of which fail ---- */

static bool out_of_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return out_of_memory ? NULL : __real_malloc(size);
}

/* ---- the worker under test: what it does is the message's type ---- */

static int say(struct troupe_actor *actor, const char *type, const char *text)
{
    return troupe_actor_tell(actor, PEER, type, .text = text);
}

static const char *payload(struct troupe_message *message)
{
    size_t size;

    return troupe_message_payload(message, &size);
}

static int on_any(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return say(actor, troupe_message_type(message), payload(message));
}

static int on_refuse(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return TROUPE_NOT_HANDLED;
}

static int on_describe(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t key_size, size;
    const char *key = troupe_message_key(message, &key_size);
    char text[200];

    (void)troupe_message_payload(message, &size);
    snprintf(
        text, sizeof(text), "%s %zu %zu %lu %lu %lu %lu %lu %d", key ? key : "none", key_size, size,
        (unsigned long)troupe_message_id(message), (unsigned long)troupe_message_sender(message),
        (unsigned long)troupe_message_ask(message), (unsigned long)troupe_message_sent_at(message),
        (unsigned long)troupe_message_timer(message), troupe_message_is_redelivered(message));
    return say(actor, "described", text);
}

static int on_reply(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return troupe_message_reply(message, "answer", "yes", 3);
}

static int on_forward(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    return troupe_message_forward(message, 42);
}

static int on_stash(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    if (troupe_message_stash(message) < 0 || troupe_message_stash(message) != -EALREADY)
        return -ENOTRECOVERABLE;
    return 0;
}

static int on_unstash(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    char text[16];

    troupe_actor_on_message(actor, "stash", on_any, NULL);
    snprintf(text, sizeof(text), "%d", troupe_actor_unstash_all(actor));
    return say(actor, "unstashed", text);
}

static void describe_future(struct troupe_actor *actor, struct troupe_future *future, int r)
{
    char text[500];
    size_t size;

    snprintf(text, sizeof(text), "%d %s %s %s%s", r, troupe_future_type(future),
             (const char *)troupe_future_payload(future, &size), troupe_future_reason(future),
             troupe_future_is_default(future) ? " default" : "");
    (void)say(actor, "ended", text);
}

/* Asks and waits; the payload says how. */
static int on_ask(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_message_options options = TROUPE_MESSAGE_DEFAULTS;
    const char *text = payload(message);
    struct troupe_future *future;

    options.reply_type = "wanted";
    if (strstr(text, "default")) {
        options.default_type = "instead";
        options.default_data = "nothing";
        options.default_size = 7;
    }
    options.type = "question";
    options.text = text;
    int r = troupe_actor_ask_with(actor, strstr(text, "self") ? SELF : PEER, &future, &options);
    if (r < 0)
        return r;
    out_of_memory = strstr(text, "short");
    r = troupe_future_await(future, strstr(text, "run") ? TROUPE_AWAIT_RUN : TROUPE_AWAIT_STASH);
    out_of_memory = false;
    describe_future(actor, future, r);
    troupe_future_free(future);
    return 0;
}

static int on_pipeline(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *futures[3];

    for (int i = 0; i < 3; i++)
        if (troupe_actor_ask(actor, PEER, &futures[i], "question", .data = &"012"[i], .size = 1) <
            0)
            return -ENOTRECOVERABLE;
    for (int i = 2; i >= 0; i--) {
        describe_future(actor, futures[i], troupe_future_await(futures[i], TROUPE_AWAIT_STASH));
        troupe_future_free(futures[i]);
    }
    return 0;
}

static int on_any_of(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *futures[2];
    char text[16];

    for (int i = 0; i < 2; i++)
        if (troupe_actor_ask(actor, PEER, &futures[i], "question", .data = &"01"[i], .size = 1) < 0)
            return -ENOTRECOVERABLE;
    if (troupe_future_await_any(futures, 2, TROUPE_AWAIT_STASH, 0) != -EAGAIN ||
        troupe_future_await_any(futures, 2, TROUPE_AWAIT_STASH, 1000) != -EAGAIN)
        return -ENOTRECOVERABLE;
    (void)say(actor, "now", "");
    int r = troupe_future_await_any(futures, 2, TROUPE_AWAIT_STASH, TROUPE_USEC_INFINITY);
    snprintf(text, sizeof(text), "%d", r);
    (void)say(actor, "first", text);
    troupe_future_drop(futures[0]);
    troupe_future_drop(futures[1]);
    return 0;
}

static void on_end(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    describe_future(actor, future, troupe_future_error(future));
    troupe_future_free(future);
}

static int on_then(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *future;

    if (troupe_actor_ask(actor, PEER, &future, "question") < 0)
        return -ENOTRECOVERABLE;
    troupe_future_then(future, on_end, NULL);
    return 0;
}

static int on_neglect(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *future;

    if (troupe_actor_ask(actor, PEER, &future, "question") < 0)
        return -ENOTRECOVERABLE;
    troupe_future_free(future);
    return 0;
}

/* A timer that cannot be set, and a message after it, both with a blob. */
static int on_shortage(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    static const char data[2 * FAKE_INLINE_MAX] = "a blob";

    out_of_memory = true;
    int r = troupe_actor_timer_after(actor, PEER, 1000, NULL, "tick", .data = data,
                                     .size = sizeof(data));
    out_of_memory = false;
    if (r != -ENOMEM)
        return -ENOTRECOVERABLE;
    return troupe_actor_tell(actor, PEER, "after", .data = data, .size = sizeof(data));
}

/* Lets the worker open no further descriptor, or as many as before. */
static int on_limit(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    static struct rlimit before;
    const int next = dup(STDIN_FILENO);

    close(next);
    if (next >= 0 && getrlimit(RLIMIT_NOFILE, &before) < 0)
        return -errno;
    struct rlimit limit = before;
    if (next >= 0)
        limit.rlim_cur = (rlim_t)next;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    return say(actor, troupe_message_type(message), next >= 0 ? "on" : "off");
}

static int on_monitor(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *first, *second;

    if (troupe_actor_monitor(actor, 55, &first) < 0 || troupe_actor_monitor(actor, 55, &second) < 0)
        return -ENOTRECOVERABLE;
    troupe_future_free(second);
    if (strcmp(payload(message), "free") == 0)
        troupe_future_free(first);
    else
        troupe_future_then(first, on_end, NULL);
    return 0;
}

static void on_failure(struct troupe_actor *actor, int error, const char *reason, void *userdata)
{
    char text[200];

    snprintf(text, sizeof(text), "%d %s", error, reason);
    (void)say(actor, "failure", text);
}

static int on_listen(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    troupe_actor_on_failure(actor, on_failure, NULL);
    return 0;
}

static int on_services(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    uint64_t id = 0;
    troupe_ref ref = 0;
    char text[200];
    int n = 0;

    n += snprintf(text, sizeof(text), "%d", troupe_actor_lookup(actor, "group/0", &ref));
    n += snprintf(text + n, sizeof(text) - (size_t)n, " %lu", (unsigned long)ref);
    n += snprintf(text + n, sizeof(text) - (size_t)n, " %d", troupe_actor_register(actor, "taken"));
    n += snprintf(text + n, sizeof(text) - (size_t)n, " %d",
                  troupe_actor_deregister(actor, "unknown"));
    n += snprintf(
        text + n, sizeof(text) - (size_t)n, " %d",
        troupe_actor_timer_after(actor, PEER, 1000, &id, "tick", .text = "x", .period_usec = 9));
    n += snprintf(text + n, sizeof(text) - (size_t)n, " %lu", (unsigned long)id);
    n += snprintf(text + n, sizeof(text) - (size_t)n, " %d",
                  troupe_actor_timer_cancel_type(actor, PEER, "tick"));
    n += snprintf(text + n, sizeof(text) - (size_t)n, " %d",
                  troupe_actor_unsubscribe(actor, 3, "type", "", 0));
    return say(actor, "services", text);
}

/* Makes a result in place, ends the job otherwise, and handles the next job meanwhile. */
static int end_before_the_next(struct troupe_job *job, struct troupe_actor *actor)
{
    void *data;

    if (troupe_job_blob(job, 5000, &data) < 0)
        return -ENOTRECOVERABLE;
    memset(data, 'o', 5000);
    if (troupe_job_succeed(job, "", 0) < 0 || troupe_actor_turn(actor, TROUPE_USEC_INFINITY) != 1)
        return -ENOTRECOVERABLE;
    return say(actor, "own", ((const char *)data)[4999] == 'o' ? "yes" : "no");
}

static int succeed_in_place(struct troupe_job *job)
{
    void *data;
    int r = troupe_job_blob(job, 5000, &data);

    if (r < 0)
        return r;
    memset(data, 'i', 5000);
    return troupe_job_succeed_blob(job);
}

static int on_job(struct troupe_job *job, void *userdata)
{
    struct troupe_actor *actor = userdata;
    struct troupe_future *future;
    size_t size;

    const char *text = troupe_job_payload(job, &size);
    if (size > 100)
        return troupe_job_succeed(job, text + size - 1, 1);
    if (strcmp(text, "outer") == 0)
        return end_before_the_next(job, actor);
    if (strcmp(text, "inner") == 0)
        return succeed_in_place(job);
    int r = troupe_actor_ask(actor, PEER, &future, "question", .text = "by job");
    if (r == 0)
        r = troupe_future_await(future, TROUPE_AWAIT_STASH);
    if (r == 0)
        r = troupe_job_succeed(job, text, size);
    troupe_future_free(future);
    return r;
}

static const struct {
    const char *type;
    troupe_message_fn fn;
} table[] = {
    {"any", on_any},           {"refuse", on_refuse},   {"describe", on_describe},
    {"reply", on_reply},       {"forward", on_forward}, {"stash", on_stash},
    {"unstash", on_unstash},   {"ask", on_ask},         {"pipeline", on_pipeline},
    {"any-of", on_any_of},     {"then", on_then},       {"neglect", on_neglect},
    {"watch", on_monitor},     {"listen", on_listen},   {"services", on_services},
    {"shortage", on_shortage}, {"limit", on_limit},
};

static int run_worker(void)
{
    struct troupe_worker *worker;

    if (troupe_worker_new(&worker) < 0)
        return 90;
    struct troupe_actor *actor = troupe_worker_actor(worker);
    for (size_t i = 0; i < ELEMENTS(table); i++)
        if (troupe_actor_on_message(actor, table[i].type, table[i].fn, NULL) < 0)
            return 92;
    troupe_worker_on_job(worker, on_job, actor);
    int r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0 ? 91 : 0;
}

static struct fake fake;

static void start(enum wake_backend backend)
{
    fake_start(&fake, backend, run_worker);
    fake_expect(&fake, PROTOCOL_READY);
}

static void stop(void)
{
    fake_stop(&fake);
}

/* The first await of an actor asks who it is. */
static void tell_self(void)
{
    struct ring_record record = fake_expect_kind(&fake, PROTOCOL_FIND);
    struct protocol_named named;

    ck_assert_int_eq(protocol_get_named(record.body, record.size, &named), 0);
    ck_assert_uint_eq(named.name_size, 0);
    fake_found(&fake, named.cookie, SELF);
}

/* ---- handling ---- */

TEST(test_handler_learns_everything_about_its_message)
{
    struct protocol_message message = {
        .id = 11,
        .sender = 22,
        .ask = 33,
        .timer = 44,
        .sent_at = 55,
        .flags = PROTOCOL_MESSAGE_REDELIVERED | 1u << 30,
        .content = fake_content("describe", "abc", 3),
    };

    message.content.topic.key = "key";
    message.content.topic.key_size = 3;
    fake_deliver(&fake, &message);
    fake_expect_tell(&fake, "described:key 3 3 11 22 33 55 44 1");
    message.content.topic.key_size = 0;
    message.flags = 0;
    fake_deliver(&fake, &message);
    fake_expect_tell(&fake, "described: 0 3 11 22 33 55 44 0");
    message.content.topic.key = NULL;
    fake_deliver(&fake, &message);
    fake_expect_tell(&fake, "described:none 0 3 11 22 33 55 44 0");
}

TEST(test_message_that_nobody_handles_is_reported_and_the_next_one_goes_on)
{
    fake_tell(&fake, 1, "unknown", "x");
    fake_tell(&fake, 2, "refuse", "x");
    fake_tell(&fake, 3, "any", "x");
    fake_expect_verdict(&fake, PROTOCOL_UNHANDLED, 1, 0, "no handler took it");
    fake_expect_verdict(&fake, PROTOCOL_UNHANDLED, 2, 0, "no handler took it");
    fake_expect_tell(&fake, "any:x");
}

TEST(test_reply_and_forward_name_what_they_are_about)
{
    struct protocol_forward forward;

    fake_tell(&fake, 1, "reply", "");
    fake_expect_reply(&fake, 501, "answer:yes");
    fake_tell(&fake, 2, "forward", "");
    struct ring_record record = fake_expect_kind(&fake, PROTOCOL_FORWARD);
    ck_assert_int_eq(protocol_get_forward(record.body, record.size, &forward), 0);
    ck_assert_uint_eq(forward.message, 2);
    ck_assert_uint_eq(forward.to, 42);
}

TEST(test_blob_is_mapped_also_between_others)
{
    size_t size = 100000;
    char *data = malloc(size);

    memset(data, 'x', size);
    fake_tell(&fake, 1, "any", "before");
    fake_deliver_data(&fake, 2, "describe", data, size);
    fake_tell(&fake, 3, "any", "after");
    fake_expect_tell(&fake, "any:before");
    fake_expect_tell(&fake, "described:none 0 100000 2 100 502 0 0 0");
    fake_expect_tell(&fake, "any:after");
    free(data);
}

/* ---- stash ---- */

TEST(test_stashed_messages_come_back_first_and_in_order)
{
    fake_tell(&fake, 1, "stash", "one");
    fake_tell(&fake, 2, "stash", "two");
    fake_tell(&fake, 3, "unstash", "");
    fake_tell(&fake, 4, "any", "last");
    fake_expect_stash(&fake, PROTOCOL_STASHED, 1, 0);
    fake_expect_stash(&fake, PROTOCOL_STASHED, 2, 0);
    fake_expect_tell(&fake, "unstashed:2");
    fake_expect_stash(&fake, PROTOCOL_STASHED, 1, PROTOCOL_STASH_IN_HAND);
    fake_expect_tell(&fake, "stash:one");
    fake_expect_stash(&fake, PROTOCOL_UNSTASHED, 1, 0);
    fake_expect_stash(&fake, PROTOCOL_STASHED, 2, PROTOCOL_STASH_IN_HAND);
    fake_expect_tell(&fake, "stash:two");
    fake_expect_stash(&fake, PROTOCOL_UNSTASHED, 2, 0);
    fake_expect_tell(&fake, "any:last");
}

/* ---- asks ---- */

TEST(test_reply_ends_the_ask)
{
    fake_tell(&fake, 1, "ask", "x");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:x");
    ck_assert_uint_eq(ask.to, PEER);
    ck_assert_uint_eq(ask.timeout, 30000000);
    ck_assert_uint_eq(ask.wanted_size, 6);
    tell_self();
    fake_replied(&fake, ask.cookie, "wanted.indeed", "this");
    fake_expect_tell(&fake, "ended:0 wanted.indeed this ");
    fake_consumed(&fake);
}

TEST(test_time_out_becomes_the_default_and_nothing_else_does)
{
    fake_tell(&fake, 1, "ask", "default");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:default");
    tell_self();
    fake_refuse(&fake, PROTOCOL_ASK_FAILED, ask.cookie, ETIMEDOUT, "no reply in time");
    fake_expect_tell(&fake, "ended:0 instead nothing  default");
    fake_tell(&fake, 2, "ask", "default");
    ask = fake_expect_ask(&fake, "question:default");
    fake_refuse(&fake, PROTOCOL_ASK_FAILED, ask.cookie, ENOENT, "gone");
    fake_expect_tell(&fake, "ended:-2   gone");
}

TEST(test_reply_without_memory_leaves_no_descriptor_behind)
{
    static const char data[6000];

    fake_tell(&fake, 1, "ask", "run short");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:run short");
    fake_replied_blob(&fake, ask.cookie, data, sizeof(data));
    fake_expect_tell(&fake, "ended:-12   the reply could not be received");
    fake_deliver_data(&fake, 2, "describe", data, sizeof(data));
    fake_expect_tell(&fake, "described:none 0 6000 2 100 502 0 0 0");
}

TEST(A2_pipelined_asks_end_in_any_order_and_a_failure_stops_none)
{
    uint64_t cookies[3];

    fake_tell(&fake, 1, "pipeline", "");
    cookies[0] = fake_expect_ask(&fake, "question:0").cookie;
    cookies[1] = fake_expect_ask(&fake, "question:1").cookie;
    cookies[2] = fake_expect_ask(&fake, "question:2").cookie;
    tell_self();
    fake_refuse(&fake, PROTOCOL_ASK_FAILED, cookies[0], EIO, "early");
    fake_replied(&fake, cookies[1], "a", "one");
    fake_replied(&fake, cookies[2], "a", "two");
    fake_expect_tell(&fake, "ended:0 a two ");
    fake_expect_tell(&fake, "ended:0 a one ");
    fake_expect_tell(&fake, "ended:-5   early");
}

TEST(test_first_of_several_futures_is_told_and_dropped_asks_are_withdrawn)
{
    static const char data[6000];
    struct protocol_by_reference by;
    uint64_t cookies[2];

    fake_tell(&fake, 1, "any-of", "");
    cookies[0] = fake_expect_ask(&fake, "question:0").cookie;
    cookies[1] = fake_expect_ask(&fake, "question:1").cookie;
    fake_expect_tell(&fake, "now:");
    fake_replied(&fake, cookies[1], "a", "");
    fake_expect_tell(&fake, "first:1");
    struct ring_record record = fake_expect_kind(&fake, PROTOCOL_ASK_DROP);
    ck_assert_int_eq(protocol_get_by_reference(record.body, record.size, &by), 0);
    ck_assert_uint_eq(by.cookie, cookies[0]);
    /* The descriptor that came with it is not the next one's. */
    fake_replied_blob(&fake, cookies[0], data, sizeof(data));
    fake_deliver_data(&fake, 2, "describe", data, sizeof(data));
    fake_expect_tell(&fake, "described:none 0 6000 2 100 502 0 0 0");
}

TEST(test_callback_of_a_future_comes_before_the_next_message)
{
    fake_tell(&fake, 1, "then", "");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:");
    fake_replied(&fake, ask.cookie, "a", "later");
    fake_tell(&fake, 2, "any", "x");
    fake_expect_tell(&fake, "ended:0 a later ");
    fake_expect_tell(&fake, "any:x");
}

TEST(test_failure_nobody_looks_at_is_reported)
{
    fake_tell(&fake, 1, "neglect", "");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:");
    fake_refuse(&fake, PROTOCOL_ASK_FAILED, ask.cookie, EIO, "broken");
    fake_expect_verdict(&fake, PROTOCOL_ERRED, 0, EIO, "broken");
    fake_tell(&fake, 2, "listen", "");
    fake_tell(&fake, 3, "neglect", "");
    ask = fake_expect_ask(&fake, "question:");
    fake_refuse(&fake, PROTOCOL_ASK_FAILED, ask.cookie, EIO, "broken");
    fake_expect_tell(&fake, "failure:-5 broken");
    fake_tell(&fake, 4, "neglect", "");
    ask = fake_expect_ask(&fake, "question:");
    fake_replied(&fake, ask.cookie, "a", "well");
}

TEST(A1_call_to_oneself_that_would_wait_for_ever_is_refused)
{
    fake_tell(&fake, 1, "ask", "self");
    fake_expect_ask(&fake, "question:self");
    tell_self();
    fake_expect_tell(&fake, "ended:-35   ");
}

/* ---- awaiting ---- */

TEST(A3_messages_wait_while_a_handler_waits)
{
    const struct memory_header *outbox = fake.channel.theirs.header;
    uint32_t head = atomic_load(&outbox->worker.head);
    fake_tell(&fake, 1, "ask", "x");
    uint32_t end = fake.channel.out.published;
    struct protocol_ask ask = fake_expect_ask(&fake, "question:x");
    tell_self();
    fake_tell(&fake, 2, "any", "second");
    /* The message in hand holds the ring, and is told from those behind it. */
    ck_assert_uint_eq(atomic_load(&outbox->taken), end);
    ck_assert_uint_eq(atomic_load(&outbox->worker.head), head);
    fake_replied(&fake, ask.cookie, "wanted", "");
    fake_tell(&fake, 3, "any", "third");
    fake_expect_tell(&fake, "ended:0 wanted  ");
    fake_expect_tell(&fake, "any:second");
    fake_expect_tell(&fake, "any:third");
    fake_consumed(&fake);
    ck_assert_uint_eq(atomic_load(&outbox->taken), atomic_load(&outbox->worker.head));
}

TEST(A3_messages_run_in_between_where_the_handler_chose_so)
{
    fake_tell(&fake, 1, "ask", "run");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:run");
    fake_tell(&fake, 2, "any", "second");
    fake_expect_stash(&fake, PROTOCOL_STASHED, 1, PROTOCOL_STASH_IN_HAND);
    fake_expect_tell(&fake, "any:second");
    fake_consumed(&fake);
    fake_replied(&fake, ask.cookie, "wanted", "");
    fake_expect_tell(&fake, "ended:0 wanted  ");
    fake_expect_stash(&fake, PROTOCOL_UNSTASHED, 1, 0);
}

TEST(test_call_to_oneself_is_handled_meanwhile_where_others_may_run)
{
    fake_tell(&fake, 1, "ask", "self run");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:self run");
    fake_tell(&fake, 2, "reply", "");
    fake_expect_stash(&fake, PROTOCOL_STASHED, 1, PROTOCOL_STASH_IN_HAND);
    fake_expect_reply(&fake, 502, "answer:yes");
    fake_replied(&fake, ask.cookie, "wanted", "yes");
    fake_expect_tell(&fake, "ended:0 wanted yes ");
    fake_expect_stash(&fake, PROTOCOL_UNSTASHED, 1, 0);
}

TEST(test_reply_gets_through_behind_more_messages_than_the_ring_holds)
{
    static char text[4000];
    unsigned told = 0;
    uint64_t shadows = 0;

    memset(text, 'z', sizeof(text) - 1);
    fake_tell(&fake, 1, "ask", "x");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:x");
    tell_self();
    for (uint64_t id = 2; id < 42; id++) {
        void *room;

        while (ring_reserve(&fake.channel.out, 4500, &room) == RING_E_FULL) {
            fake_expect_stash(&fake, PROTOCOL_STASHED, 1 + shadows,
                              shadows == 0 ? PROTOCOL_STASH_IN_HAND : 0);
            shadows++;
        }
        fake_tell(&fake, id, "any", text);
    }
    fake_replied(&fake, ask.cookie, "wanted", "at last");
    while (told < 41) {
        struct ring_record record = fake_next(&fake);

        told += record.kind == PROTOCOL_TELL;
        if (record.kind == PROTOCOL_STASHED && told == 0)
            shadows++;
        ck_assert(record.kind == PROTOCOL_TELL || record.kind == PROTOCOL_STASHED ||
                  record.kind == PROTOCOL_UNSTASHED);
    }
    /* All but what a quarter of the ring holds. */
    ck_assert_uint_gt(shadows, 30);
}

TEST(test_stop_overtakes_messages_but_not_the_one_in_hand, .first = WAKE_FUTEX, .n = 2,
     .bare = true)
{
    start((enum wake_backend)_i);
    fake_tell(&fake, 1, "ask", "x");
    struct protocol_ask ask = fake_expect_ask(&fake, "question:x");
    tell_self();
    fake_tell(&fake, 2, "any", "never");
    fake_control(&fake, MEMORY_CONTROL_STOP);
    fake_put(&fake, PROTOCOL_STOP, "", 0);
    fake_replied(&fake, ask.cookie, "wanted", "");
    fake_expect_tell(&fake, "ended:0 wanted  ");
    while (!waitpid(fake.pid, NULL, WNOHANG | WNOWAIT))
        sched_yield();
    ck_assert(!ring_pending(&fake.channel.in));
    /* What was not handled is still in the ring. */
    ck_assert_uint_ne(atomic_load(&fake.channel.their_words->head), fake.channel.out.published);
    ck_assert_int_eq(fake_wait(&fake), 0);
}

TEST(test_pause_lets_messages_wait_and_jobs_pass)
{
    fake_control(&fake, MEMORY_CONTROL_PAUSE);
    fake_tell(&fake, 1, "any", "one");
    fake_tell(&fake, 2, "any", "two");
    fake_send(&fake, "job", 3, 1);
    fake_started(&fake);
    fake_replied(&fake, fake_expect_ask(&fake, "question:by job").cookie, "a", "");
    tell_self();
    fake_result(&fake);
    fake_control(&fake, 0);
    fake_expect_tell(&fake, "any:one");
    fake_expect_tell(&fake, "any:two");
}

TEST(test_job_asks_while_messages_and_jobs_wait)
{
    size_t size = 50000;
    char *data = malloc(size);

    memset(data, 'q', size);
    fake_send(&fake, "first", 5, 1);
    fake_started(&fake);
    struct protocol_ask ask = fake_expect_ask(&fake, "question:by job");
    tell_self();
    fake_tell(&fake, 1, "any", "message");
    fake_send(&fake, data, size, 1);
    fake_deliver_data(&fake, 2, "describe", data, size);
    fake_replied(&fake, ask.cookie, "a", "");
    fake.handle = 1;
    fake_result(&fake);
    ck_assert_str_eq(fake.data, "first");
    fake_expect_tell(&fake, "any:message");
    fake_expect_tell(&fake, "described:none 0 50000 2 100 502 0 0 0");
    fake.handle = 2;
    fake_started(&fake);
    fake_result(&fake);
    ck_assert_str_eq(fake.data, "q");
    free(data);
}

TEST(test_job_handled_by_the_handler_of_another_has_a_result_of_its_own)
{
    fake_send(&fake, "outer", 5, 1);
    fake_started(&fake);
    fake_result(&fake);
    fake_send(&fake, "inner", 5, 1);
    fake_started(&fake);
    fake_result(&fake);
    ck_assert_int_eq(fake.outcome, PROTOCOL_SUCCESS);
    ck_assert_uint_eq(fake.size, 5000);
    ck_assert_int_eq(fake.data[4999], 'i');
    fake_expect_tell(&fake, "own:yes");
}

TEST(test_job_whose_blob_finds_no_descriptor_fails_and_the_worker_goes_on)
{
    static const char data[50000];

    fake_tell(&fake, 1, "limit", "");
    fake_expect_tell(&fake, "limit:on");
    fake_do(&fake, data, sizeof(data));
    fake_ended(&fake, PROTOCOL_RETRY, EMFILE, NULL);
    fake_tell(&fake, 2, "limit", "");
    fake_expect_tell(&fake, "limit:off");
    fake_do(&fake, data, sizeof(data));
    ck_assert_int_eq(fake.outcome, PROTOCOL_SUCCESS);
}

/* ---- the supervisor's services ---- */

TEST(test_monitor_ends_with_the_cause)
{
    fake_tell(&fake, 1, "watch", "");
    fake_expect_kind(&fake, PROTOCOL_MONITOR);
    fake_expect_kind(&fake, PROTOCOL_MONITOR);
    fake_terminated(&fake, 54, "not this one");
    fake_terminated(&fake, 55, "killed");
    fake_expect_tell(&fake, "ended:0  killed ");
}

TEST(test_last_monitor_of_an_actor_freed_ends_it_at_the_supervisor)
{
    struct protocol_by_reference by;

    fake_tell(&fake, 1, "watch", "free");
    fake_expect_kind(&fake, PROTOCOL_MONITOR);
    fake_expect_kind(&fake, PROTOCOL_MONITOR);
    struct ring_record record = fake_expect_kind(&fake, PROTOCOL_UNMONITOR);
    ck_assert_int_eq(protocol_get_by_reference(record.body, record.size, &by), 0);
    ck_assert_uint_eq(by.reference, 55);
    fake_answer(&fake, by.cookie, 1);
    fake_tell(&fake, 2, "any", "x");
    fake_expect_tell(&fake, "any:x");
}

static uint64_t cookie_of(unsigned kind)
{
    struct ring_record record = fake_expect_kind(&fake, kind);
    uint64_t cookie;

    memcpy(&cookie, record.body, sizeof(cookie));
    return cookie;
}

TEST(test_timer_without_memory_leaves_no_descriptor_behind)
{
    const void *data;
    struct protocol_tell tell;

    fake_tell(&fake, 1, "shortage", "");
    struct ring_record record = fake_expect_kind(&fake, PROTOCOL_TELL);
    ck_assert_int_eq(protocol_get_tell(record.body, record.size, &tell), 0);
    ck_assert_uint_eq(tell.content.payload.serial, 1);
    ck_assert_int_eq(payload_receive_blob(fake.control, &tell.content.payload, &data), 0);
    ck_assert_str_eq(data, "a blob");
}

TEST(test_services_ask_and_return_what_is_answered)
{
    struct protocol_subscription subscription;
    struct protocol_timer timer;

    fake_tell(&fake, 1, "services", "");
    fake_found(&fake, cookie_of(PROTOCOL_FIND), 1234);
    fake_refuse(&fake, PROTOCOL_REFUSED, cookie_of(PROTOCOL_REGISTER), EEXIST, "taken");
    fake_answer(&fake, cookie_of(PROTOCOL_DEREGISTER), 0);
    struct ring_record record = fake_expect_kind(&fake, PROTOCOL_TIMER);
    ck_assert_int_eq(protocol_get_timer(record.body, record.size, &timer), 0);
    ck_assert_uint_eq(timer.at, 1000);
    ck_assert_uint_eq(timer.period, 9);
    ck_assert_str_eq(fake_text(&timer.content), "tick:x");
    fake_answer(&fake, timer.cookie, 77);
    fake_answer(&fake, cookie_of(PROTOCOL_TIMER_CANCEL), 3);
    record = fake_expect_kind(&fake, PROTOCOL_UNSUBSCRIBE);
    ck_assert_int_eq(protocol_get_subscription(record.body, record.size, &subscription), 0);
    ck_assert_ptr_nonnull(subscription.topic.key);
    fake_answer(&fake, subscription.cookie, 1);
    fake_expect_tell(&fake, "services:0 1234 -17 0 0 77 3 1");
}

const struct suite suite = {.setup_with = start, .teardown = stop};
