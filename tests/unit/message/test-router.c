/* SPDX-License-Identifier: MIT */
#include "shared/base/log.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/monitor.h"
#include "supervisor/message/router.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/fixture.h"
#include "tests/unit/message/message-fixture.h"
#include "tests/unit/suite.h"
#include <limits.h>

static struct message_context context;
static usec_t wall;

static usec_t fake_realtime(void)
{
    return wall;
}

static void setup(void)
{
    set_up_messages(&context);
    context.alarms->realtime = fake_realtime;
    wall = 1000 * USEC_PER_SEC;
}

static void teardown(void)
{
    tear_down_messages(&context);
}

static struct actor *new_actor(const char *name)
{
    return make_actor(&context, &INBOX, name);
}

static int tell(uint64_t to, const char *type)
{
    const struct router_message message = {.to = to, .topic = topic_of(type)};

    return router_tell(&context, &message);
}

/* The types of what waits for it, in order, each followed by a space. */
static const char *waiting(const struct actor *actor)
{
    static char text[1024];
    size_t size = 0;

    text[0] = '\0';
    list_for_each_entry (envelope, &actor->mailbox.messages, struct envelope, link)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%.*s ",
                                 (int)envelope->topic.type_size, envelope->topic.type);
    return text;
}

static uint64_t dead(enum dead_letter_reason reason)
{
    return context.dead_letters.tally->counts[reason];
}

/* ---- references ---- */

TEST(a_reference_outlives_its_actor_and_never_finds_another)
{
    struct actor *first = new_actor("first");
    uint64_t reference = first->reference, handle = first->handle;

    ck_assert_ptr_eq(actor_get(&context, reference), first);
    ck_assert_ptr_null(actor_get(&context, 0));
    actor_end(first, "gone");
    struct actor *second = new_actor("second");
    ck_assert_uint_eq((uint32_t)second->handle, (uint32_t)handle);
    ck_assert_ptr_null(actor_get(&context, reference));
    ck_assert_int_eq(tell(reference, "x"), ROUTER_E_GONE);
    ck_assert_uint_eq(dead(DEAD_GONE), 1);
    ck_assert_str_eq(waiting(second), "");
}

TEST(actors_keep_their_references_under_the_next_supervisor)
{
    const uint64_t reference = new_actor("first")->reference;
    struct actor *exchange, *declared;

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "x", EXCHANGE_SINGLE, false), 0);
    uint64_t transient = exchange->reference;
    actor_end(exchange, "deleted");
    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "x", EXCHANGE_SINGLE, false), 0);
    ck_assert_uint_ne(exchange->reference, transient);
    ck_assert_ptr_null(actor_get(&context, transient));

    struct message_context next = context;
    message_context_init(&next);
    next.loop = context.loop;
    next.events = context.events;
    ck_assert_int_eq(exchange_actor_new(&declared, &next, "y", EXCHANGE_SINGLE, true), 0);
    ck_assert_int_eq(exchange_actor_new(&declared, &next, "first", EXCHANGE_SINGLE, true), 0);
    ck_assert_uint_eq(declared->reference, reference);
    /* Under one supervisor, one that comes back is another one. */
    actor_end(declared, "removed");
    ck_assert_int_eq(exchange_actor_new(&declared, &next, "first", EXCHANGE_SINGLE, true), 0);
    ck_assert_uint_ne(declared->reference, reference);
    message_context_deinit(&next);
}

TEST(the_key_of_a_cell_cannot_be_chosen_to_take_the_reference_of_another)
{
    /* Equal by FNV-1a. */
    static const char chosen[] = "evil/Ik2z_vm263HqAZ00kS", name[] = "mail/wEQHMG3GM9JBE9j3sU";
    const uint64_t reference = new_actor(name)->reference;
    struct message_context next = context;
    const struct actor *actor;

    message_context_init(&next);
    next.loop = context.loop;
    next.events = context.events;
    (void)make_actor(&next, &INBOX, chosen);
    actor = make_actor(&next, &INBOX, name);
    ck_assert_ptr_eq(actor_get(&next, reference), actor);
    message_context_deinit(&next);
}

/* ---- names ---- */

TEST(names_are_taken_once_and_go_with_their_actor)
{
    struct actor *a = new_actor("a"), *b = new_actor("b");

    ck_assert_int_eq(actor_register(a, "bank"), 0);
    ck_assert_int_eq(actor_register(a, "bank"), 0);
    ck_assert_int_eq(actor_register(b, "bank"), ACTOR_E_EXISTS);
    ck_assert(!actor_deregister(b, "bank"));
    ck_assert_ptr_eq(actor_by_address(&context, "bank"), a);
    actor_end(a, "gone");
    ck_assert_ptr_null(actor_by_address(&context, "bank"));
    ck_assert_int_eq(actor_register(b, "bank"), 0);
    ck_assert(actor_deregister(b, "bank"));
    ck_assert(!actor_deregister(b, "bank"));
}

TEST(names_that_could_be_taken_for_addresses_are_refused)
{
    static const char *const bad[] = {"", "a/b", "@1", "-a", ".a", "a b", "\xc3\xa4"};
    struct actor *actor = new_actor("a");

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(actor_register(actor, bad[i]), ACTOR_E_BAD_NAME);
}

/* ---- mailboxes ---- */

TEST(answers_and_messages_go_in_the_order_in_which_they_were_sent)
{
    struct mailbox mailbox;
    struct topic none = topic_of("");
    struct envelope *envelopes[3];

    mailbox_init(&mailbox);
    for (unsigned i = 0; i < 3; i++) {
        envelopes[i] = envelope_new(PROTOCOL_MESSAGE, &none);
        envelopes[i]->id = i + 1;
    }
    mailbox_add(&mailbox, envelopes[0]);
    mailbox_add_answer(&mailbox, envelopes[1]);
    mailbox_add(&mailbox, envelopes[2]);
    ck_assert_ptr_eq(mailbox_next(&mailbox, true), envelopes[1]);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_eq(mailbox_next(&mailbox, false), envelopes[i]);
        mailbox_take(&mailbox, envelopes[i]);
        envelope_free(envelopes[i]);
    }
    ck_assert(mailbox_idle(&mailbox));
    ck_assert_uint_eq(mailbox.n + mailbox.bytes + mailbox.answer_bytes, 0);
}

TEST(a_message_larger_than_the_whole_memory_is_let_in_alone)
{
    struct mailbox mailbox;
    struct topic none = topic_of("");
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, &none);

    mailbox_init(&mailbox);
    ck_assert(mailbox_has_room(&mailbox, NULL, 1000, 10, 100));
    mailbox_add_stash(&mailbox, envelope);
    ck_assert(!mailbox_has_room(&mailbox, NULL, 1000, 10, 100));
    ck_assert(!mailbox_has_room(&mailbox, NULL, 0, 1, 1 << 20));
    ck_assert_ptr_eq(mailbox_stashed(&mailbox, 0), envelope);
    mailbox_take(&mailbox, envelope);
    envelope_free(envelope);
}

static int tell_as(const struct actor *sender, const struct actor *to)
{
    const struct router_message message = {
        .to = to->reference, .sender = sender->reference, .topic = topic_of("t")};

    return router_tell(&context, &message);
}

TEST(no_group_fills_a_mailbox_for_all_others)
{
    struct actor *to = new_actor("to"), *greedy = new_actor("greedy/0"),
                 *other = new_actor("greedy/1"), *modest = new_actor("modest");
    const unsigned max = (unsigned)actor_policy(to).mailbox_max;
    unsigned n = 0;

    while (tell_as(greedy, to) == 0)
        n++;
    ck_assert_uint_eq(n, max);
    ck_assert_int_eq(tell_as(other, to), ROUTER_E_FULL);
    for (n = 0; tell_as(modest, to) == 0; n++)
        ck_assert_int_eq(tell_as(greedy, to), ROUTER_E_FULL);
    ck_assert_uint_eq(n, max / 4);
    ck_assert_uint_eq(dead(DEAD_MAILBOX_FULL), max / 4 + 3);
    /* Nothing of that is left behind. */
    for (struct envelope *envelope; (envelope = mailbox_oldest(&to->mailbox));) {
        mailbox_take(&to->mailbox, envelope);
        envelope_free(envelope);
    }
    ck_assert_uint_eq(to->mailbox.shares.n, 0);
    ck_assert_int_eq(tell_as(other, to), 0);
}

static struct actor_policy drops(const struct actor *self)
{
    return (struct actor_policy){
        .mailbox_max = 100, .mailbox_memory_max = 1 << 20, .overflow = CONFIG_OVERFLOW_DROP_OLDEST};
}

TEST(with_drop_oldest_a_group_displaces_its_own_messages)
{
    static struct actor_class class;
    struct actor *greedy = new_actor("greedy"), *modest = new_actor("modest"), *to;
    const struct envelope *oldest;

    class = INBOX;
    class.policy = drops;
    to = make_actor(&context, &class, "to");
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(tell_as(modest, to), 0);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(tell_as(greedy, to), 0);
    oldest = mailbox_oldest(&to->mailbox);
    ck_assert_uint_eq(oldest->sender, modest->reference);
    ck_assert_uint_eq(oldest->share->used[MAILBOX_SHARE_N], 10);
    ck_assert_uint_eq(to->mailbox.n, 105);
    ck_assert_uint_eq(dead(DEAD_DROPPED), 10 + 1000 - 105);
}

TEST(an_actor_ends_whose_mailbox_many_groups_have_filled)
{
    struct actor *to = new_actor("to"), *greedy = new_actor("greedy"),
                 *modest = new_actor("modest");

    while (tell_as(greedy, to) == 0)
        ;
    while (tell_as(modest, to) == 0)
        ;
    actor_end(to, "gone");
    fake_peer_turns(context.loop, 200);
    ck_assert(list_empty(&context.remains));
    ck_assert_uint_ge(dead(DEAD_GONE), 12000);
}

/* ---- exchanges ---- */

TEST(an_exchange_that_goes_on_hands_out_a_part_in_each_turn)
{
    struct actor *a = new_actor("a"), *b = new_actor("b"), *exchange;
    const struct topic all = topic_of("");
    unsigned turns = 0;

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    exchange_subscribe(actor_exchange(exchange), &a->subscriptions, &all);
    exchange_subscribe(actor_exchange(exchange), &b->subscriptions, &all);
    delivery_pause(exchange);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(tell(exchange->reference, "x"), 0);
    delivery_resume(exchange);
    exchange->feed.fn(&exchange->feed);
    ck_assert_uint_le(a->mailbox.n, 125);
    ck_assert_int_eq(tell(exchange->reference, "last"), 0);
    for (; !mailbox_idle(&exchange->mailbox); turns++)
        fake_peer_turns(context.loop, 1);
    ck_assert_uint_ge(turns, 7);
    ck_assert_uint_eq(a->mailbox.n, 1001);
    ck_assert_uint_eq(b->mailbox.n, 1001);
    ck_assert_mem_eq(list_entry(a->mailbox.messages.prev, struct envelope, link)->topic.type,
                     "last", 4);
    actor_end(exchange, "deleted");
}

/* Subscribes to so many types, all of which are ancestors of one. */
static void subscribe_often(struct actor *exchange, struct actor *subscriber, unsigned n,
                            char *type)
{
    *type = '\0';
    for (unsigned i = 0; i < n; i++) {
        const struct topic topic = topic_of(type);

        ck_assert_int_eq(
            exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, &topic), 0);
        strcat(type, *type == '\0' ? "a" : ".a");
    }
}

TEST(a_message_is_copied_in_pieces_and_stays_ahead_of_later_ones)
{
    struct actor *exchange, *subscribers[10], *a, *late;
    const struct topic all = topic_of("");
    char type[256], last[300];
    unsigned turns = 0;

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    for (unsigned i = 0; i < 10; i++) {
        (void)snprintf(last, sizeof(last), "s%u", i);
        subscribers[i] = new_actor(last);
        subscribe_often(exchange, subscribers[i], 100, type);
    }
    a = subscribers[0];
    (void)snprintf(last, sizeof(last), "%s.last", type);
    ck_assert_int_eq(tell(exchange->reference, type), 0);
    ck_assert_uint_eq(a->mailbox.n, 100);
    ck_assert_uint_eq(subscribers[9]->mailbox.n, 0);
    ck_assert_int_eq(tell(exchange->reference, last), 0);
    ck_assert_uint_eq(a->mailbox.n, 100);
    /* Between two pieces: who has had its copies leaves, and another one comes. */
    exchange_forget(&a->subscriptions);
    late = new_actor("late");
    exchange_subscribe(actor_exchange(exchange), &late->subscriptions, &all);
    for (; !mailbox_idle(&exchange->mailbox); turns++)
        fake_peer_turns(context.loop, 1);
    ck_assert_uint_ge(turns, 5);
    ck_assert_uint_eq(a->mailbox.n, 100);
    ck_assert_uint_eq(late->mailbox.n, 2);
    for (unsigned i = 1; i < 10; i++) {
        ck_assert_uint_eq(subscribers[i]->mailbox.n, 200);
        ck_assert_uint_eq(list_entry(subscribers[i]->mailbox.messages.prev, struct envelope, link)
                              ->topic.type_size,
                          strlen(last));
    }
    ck_assert_uint_eq(dead(DEAD_NO_MATCH), 0);
}

TEST(large_copies_are_fewer_in_a_turn)
{
    struct actor *a = new_actor("a"), *exchange;
    struct payload payload = PAYLOAD_NULL;
    static const char bytes[32000];
    char type[256];

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    subscribe_often(exchange, a, 100, type);
    ck_assert_int_eq(payload_set(&payload, bytes, sizeof(bytes)), 0);
    struct router_message message = (struct router_message){
        .to = exchange->reference, .topic = topic_of(type), .payload = &payload};
    ck_assert_int_eq(router_tell(&context, &message), 0);
    ck_assert_uint_le(a->mailbox.n, 40);
    while (!mailbox_idle(&exchange->mailbox))
        fake_peer_turns(context.loop, 1);
    ck_assert_uint_eq(a->mailbox.n, 100);
}

TEST(an_exchange_that_ends_between_two_pieces_leaves_a_dead_letter)
{
    struct actor *a = new_actor("a"), *b = new_actor("b"), *c = new_actor("c"), *exchange;
    char type[256];

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    subscribe_often(exchange, a, 100, type);
    subscribe_often(exchange, b, 100, type);
    subscribe_often(exchange, c, 100, type);
    ck_assert_int_eq(tell(exchange->reference, type), 0);
    actor_end(exchange, "deleted");
    fake_peer_turns(context.loop, 1);
    ck_assert_uint_lt(c->mailbox.n, 100);
    ck_assert_uint_eq(dead(DEAD_GONE), 1);
}

TEST(the_subscriptions_of_an_exchange_that_ends_go_in_parts)
{
    struct actor *subscriber = new_actor("a"), *exchange, *other;
    char name[16];

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    ck_assert_int_eq(exchange_actor_new(&other, &context, "other", EXCHANGE_TYPED_MULTI, false), 0);
    for (unsigned i = 0; i < EXCHANGE_PER_ACTOR_MAX - 1; i++) {
        (void)snprintf(name, sizeof(name), "t%u", i);
        struct topic topic = topic_of(name);
        ck_assert_int_eq(
            exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, &topic), 0);
    }
    ck_assert_int_eq(exchange_subscribe(actor_exchange(other), &subscriber->subscriptions,
                                        &(struct topic){.type = "t", .type_size = 1}),
                     0);
    actor_end(exchange, "deleted");
    ck_assert_uint_gt(subscriber->subscriptions.n_subscriptions, EXCHANGE_PER_ACTOR_MAX / 2);
    fake_peer_turns(context.loop, 1);
    ck_assert_uint_gt(subscriber->subscriptions.n_subscriptions, EXCHANGE_PER_ACTOR_MAX / 2);
    fake_peer_turns(context.loop, 20);
    ck_assert_uint_eq(subscriber->subscriptions.n_subscriptions, 1);
}

TEST(a_subscriber_may_end_before_the_exchange_that_has_ended)
{
    struct actor *a = new_actor("a"), *b = new_actor("b"), *exchange;
    const struct topic all = topic_of("");

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_SINGLE, false),
                     0);
    exchange_subscribe(actor_exchange(exchange), &a->subscriptions, &all);
    exchange_subscribe(actor_exchange(exchange), &b->subscriptions,
                       &(struct topic){.type = "t", .type_size = 1});
    actor_end(exchange, "deleted");
    actor_end(a, "gone");
    fake_peer_turns(context.loop, 1);
    ck_assert_uint_eq(b->subscriptions.n_subscriptions, 0);
    ck_assert(list_empty(&context.remains));
}

TEST(there_are_only_so_many_exchanges)
{
    struct actor *exchange = NULL, *more;
    char name[16];

    for (unsigned i = 0; i < EXCHANGES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "x%u", i);
        ck_assert_int_eq(exchange_actor_new(&exchange, &context, name, EXCHANGE_SINGLE, false), 0);
    }
    ck_assert_int_eq(exchange_actor_new(&more, &context, "more", EXCHANGE_SINGLE, false),
                     ACTOR_E_TOO_MANY);
    actor_end(exchange, "gone");
    ck_assert_int_eq(exchange_actor_new(&more, &context, "more", EXCHANGE_SINGLE, false), 0);
}

TEST(no_group_takes_the_exchanges_of_others)
{
    struct actor *exchange, *modest = new_actor("modest");
    unsigned n = 0;
    char name[32];

    for (unsigned i = 0; i < EXCHANGES_MAX / EXCHANGES_PER_ACTOR_MAX + 1; i++) {
        (void)snprintf(name, sizeof(name), "greedy/%u", i);
        struct actor *greedy = new_actor(name);
        for (unsigned k = 0; k < EXCHANGES_PER_ACTOR_MAX; k++) {
            (void)snprintf(name, sizeof(name), "x%u.%u", i, k);
            n += exchange_actor_make(&exchange, greedy, name, EXCHANGE_SINGLE) == 0;
        }
    }
    ck_assert_uint_eq(n, EXCHANGES_MAX / 2);
    ck_assert_int_eq(exchange_actor_make(&exchange, modest, "own", EXCHANGE_SINGLE), 0);
    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "new", EXCHANGE_SINGLE, true), 0);
    actor_end(exchange, "gone");
}

/* ---- asks ---- */

static struct {
    unsigned n;
    int error;
    char type[32];
} answered;

static void on_done(void *userdata, const struct envelope *reply, int error, const char *reason)
{
    answered.n++;
    answered.error = error;
    snprintf(answered.type, sizeof(answered.type), "%.*s", reply ? (int)reply->topic.type_size : 0,
             reply ? reply->topic.type : "");
}

static int ask(uint64_t to, const char *wanted, usec_t timeout, uint64_t *ret)
{
    const struct router_message message = {.to = to, .topic = topic_of("question")};

    memset(&answered, 0, sizeof(answered));
    return router_ask(&context, &message, wanted, timeout, on_done, NULL, ret);
}

TEST(an_ask_of_nobody_fails_and_tells_once)
{
    struct actor *actor = new_actor("actor");
    uint64_t handle, gone = actor->reference;

    ck_assert_int_eq(ask(gone, "", USEC_INFINITY, &handle), 0);
    actor_end(actor, "gone");
    ck_assert_uint_eq(answered.n, 1);
    ck_assert_int_eq(answered.error, ENOENT);
    ck_assert_int_eq(ask(gone, "", USEC_INFINITY, &handle), ROUTER_E_GONE);
    ck_assert_uint_eq(answered.n, 0);
}

TEST(an_ask_through_an_exchange_fails_with_its_last_copy)
{
    struct actor *a = new_actor("a"), *b = new_actor("b"), *exchange;
    const struct topic all = topic_of("");
    uint64_t handle;

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    exchange_subscribe(actor_exchange(exchange), &a->subscriptions, &all);
    exchange_subscribe(actor_exchange(exchange), &b->subscriptions, &all);
    ck_assert_int_eq(ask(exchange->reference, "", USEC_INFINITY, &handle), 0);
    actor_end(a, "gone");
    ck_assert_uint_eq(answered.n, 0);
    actor_end(b, "gone");
    ck_assert_uint_eq(answered.n, 1);
}

TEST(handles_of_asks_cannot_be_guessed)
{
    const struct ask_options options = {.wanted = topic_of(""), .timeout = USEC_INFINITY};
    struct ask *asks[100];

    for (size_t i = 0; i < ELEMENTS(asks); i++) {
        ck_assert_int_eq(ask_new(&asks[i], &context, &options), 0);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_gt(asks[i]->handle - asks[j]->handle + 1000, 2000);
    }
    for (size_t i = 0; i < ELEMENTS(asks); i++)
        ask_end(asks[i]);
}

TEST(an_ask_counts_for_each_who_gets_it)
{
    struct actor *asker = new_actor("asker"), *subscriber, *exchange;
    const struct ask_options options = {
        .asker = asker, .wanted = topic_of(""), .timeout = USEC_INFINITY};
    struct ask *first, *second;

    ck_assert_int_eq(exchange_actor_new(&exchange, &context, "news", EXCHANGE_TYPED_MULTI, false),
                     0);
    subscriber = new_actor("subscriber");
    ck_assert_int_eq(ask_new(&first, &context, &options), 0);
    ck_assert(ask_share(first, 2 * ACTOR_ASKS_MAX)); /* alone */
    ck_assert_uint_eq(asker->n_asks, 2 * ACTOR_ASKS_MAX);
    ck_assert_int_eq(ask_new(&second, &context, &options), 0);
    ck_assert(!ask_share(second, 2));
    ask_end(first);
    ck_assert_uint_eq(asker->n_asks, 1);
    ck_assert(ask_share(second, 2));
    ask_swap_all(asker, subscriber);
    ck_assert_uint_eq(asker->n_asks, 0);
    ck_assert_uint_eq(subscriber->n_asks, 2);
    ask_end(second);
    ck_assert_uint_eq(subscriber->n_asks, 0);
}

TEST(an_ask_is_dropped_by_its_cookie_however_many_there_are)
{
    struct actor *asker = new_actor("asker"), *other = new_actor("other");
    struct ask_options options = {.asker = asker, .wanted = topic_of(""), .timeout = USEC_INFINITY};
    struct ask *entry;

    for (options.cookie = 0; options.cookie < ACTOR_ASKS_MAX; options.cookie++)
        ck_assert_int_eq(ask_new(&entry, &context, &options), 0);
    ck_assert_uint_le(longest(&asker->asks_by_cookie), 24);
    ask_end_cookie(asker, ACTOR_ASKS_MAX);
    ck_assert_uint_eq(asker->n_asks, ACTOR_ASKS_MAX);
    ask_swap_all(asker, other);
    for (uint64_t cookie = 0; cookie < ACTOR_ASKS_MAX; cookie++) {
        ask_end_cookie(asker, cookie);
        ask_end_cookie(other, cookie);
    }
    ck_assert_uint_eq(other->n_asks, 0);
}

TEST(a_monitor_is_found_however_many_there_are)
{
    struct actor *observer = new_actor("watcher"), *other = new_actor("other");
    struct actor *monitored[ACTOR_MONITORS_MAX];

    for (unsigned i = 0; i < ACTOR_MONITORS_MAX; i++) {
        monitored[i] = new_actor("watched");
        ck_assert_int_eq(monitor_add(observer, monitored[i]->reference), 0);
    }
    ck_assert_int_eq(monitor_add(observer, other->reference), MONITOR_E_TOO_MANY);
    ck_assert_uint_le(longest(&observer->monitoring_by_reference), 16);
    monitor_swap_all(observer, other);
    for (unsigned i = 0; i < ACTOR_MONITORS_MAX; i++) {
        ck_assert(!monitor_remove(observer, monitored[i]->reference));
        ck_assert(monitor_remove(other, monitored[i]->reference));
    }
}

TEST(a_stand_in_that_outlives_its_place_is_on_its_own)
{
    struct actor *place = new_actor("place"), *standby = new_actor("place");

    actor_set_place(standby, place);
    ck_assert_ptr_eq(actor_self(standby), place);
    delivery_swap(standby, false);
    ck_assert_ptr_null(place->waits_for);
    actor_end(place, "the test wants it");
    ck_assert_ptr_eq(actor_self(standby), standby);
}

TEST(a_stashed_message_is_found_however_many_there_are)
{
    const struct topic none = topic_of("");
    struct mailbox mailbox;
    struct envelope *envelope;

    mailbox_init(&mailbox);
    for (uint64_t id = 1; id <= 100000; id++) {
        envelope = envelope_new(PROTOCOL_MESSAGE, &none);
        envelope->id = id;
        mailbox_add_stash(&mailbox, envelope);
        mailbox_set_in_hand(&mailbox, envelope, id % 2);
    }
    ck_assert_uint_eq(mailbox.n_in_hand, 50000);
    ck_assert_uint_le(longest(&mailbox.stash_by_id), 24);
    ck_assert_ptr_null(mailbox_stashed(&mailbox, 0));
    for (uint64_t id = 100000; id >= 1; id--) {
        envelope = mailbox_stashed(&mailbox, id);
        ck_assert_ptr_nonnull(envelope);
        mailbox_take(&mailbox, envelope);
        envelope_free(envelope);
        ck_assert_ptr_null(mailbox_stashed(&mailbox, id));
    }
    ck_assert_uint_eq(mailbox.n_in_hand + mailbox.n_stashed + mailbox.n, 0);
    mailbox_deinit(&mailbox);
}

/* ---- watches ---- */

TEST(P8_a_death_notice_about_something_unknown_is_a_dead_letter)
{
    struct actor *observer = new_actor("watcher"), *monitored = new_actor("watched");
    uint64_t reference = monitored->reference;

    ck_assert_int_eq(monitor_add(observer, reference), 0);
    ck_assert(monitor_remove(observer, reference));
    ck_assert(!monitor_remove(observer, reference)); /* who is alive has no notice */
    ck_assert_uint_eq(dead(DEAD_UNKNOWN_DEATH), 0);
    ck_assert_int_eq(monitor_add(observer, reference), 0);
    actor_end(monitored, "gone");
    ck_assert(!monitor_remove(observer, reference));
    ck_assert_uint_eq(dead(DEAD_UNKNOWN_DEATH), 1);
    ck_assert(!monitor_remove(observer, 0));
    ck_assert_uint_eq(dead(DEAD_UNKNOWN_DEATH), 2);
}

TEST(a_monitor_tells_once_and_at_once_of_what_is_gone)
{
    struct actor *observer = new_actor("watcher"), *monitored = new_actor("watched");
    struct endpoint *never_read = (struct endpoint *)(uintptr_t)&context;
    uint64_t reference = monitored->reference;
    struct protocol_terminated notice;

    observer->inbox.endpoint = never_read; /* only looked at for being there */
    ck_assert_int_eq(monitor_add(observer, reference), 0);
    ck_assert_int_eq(monitor_add(observer, reference), 0);
    ck_assert(list_empty(&observer->mailbox.answers));
    monitor_notify(monitored, "gone");
    monitor_notify(monitored, "gone");
    ck_assert_ptr_nonnull(mailbox_next(&observer->mailbox, true));
    struct envelope *envelope = mailbox_next(&observer->mailbox, true);
    ck_assert_int_eq(protocol_get_terminated(envelope->head, envelope->head_size, &notice), 0);
    ck_assert_uint_eq(notice.reference, reference);
    mailbox_take(&observer->mailbox, envelope);
    envelope_free(envelope);
    ck_assert(list_empty(&observer->mailbox.answers));
    actor_end(monitored, "gone");
    ck_assert_int_eq(monitor_add(observer, reference), 0);
    envelope = mailbox_next(&observer->mailbox, true);
    ck_assert_ptr_nonnull(envelope);
    mailbox_take(&observer->mailbox, envelope);
    envelope_free(envelope);
    ck_assert(!monitor_remove(observer, reference));
    observer->inbox.endpoint = NULL;
}

/* ---- what is said about them ---- */

TEST(a_rate_lets_so_many_through_in_each_second)
{
    struct rate rate = RATE_NULL;
    unsigned left_out;

    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(rate_take(&rate, 5 * USEC_PER_SEC, 3, &left_out), i < 3);
    ck_assert(!rate_take(&rate, 6 * USEC_PER_SEC - 1, 3, &left_out));
    ck_assert(rate_take(&rate, 6 * USEC_PER_SEC, 3, &left_out));
    ck_assert_uint_eq(left_out, 8);
    ck_assert(rate_take(&rate, 6 * USEC_PER_SEC, 3, &left_out));
    ck_assert_uint_eq(left_out, 0);
}

/* ---- timers ---- */

static uint64_t schedule(struct actor *to, usec_t at, usec_t period, bool realtime,
                         const char *type)
{
    const struct topic topic = topic_of(type);
    const struct schedule_options options = {
        .to = to, .at = at, .period = period, .realtime = realtime, .topic = &topic};
    uint64_t id;

    ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    return id;
}

/* As many turns as it takes for all that is due. The clock of the loop stands still. */
static void run_timers(usec_t now)
{
    for (unsigned i = 0; i < 1000 && timer_queue_next(loop_timers(context.loop)) <= now; i++)
        timer_queue_run(loop_timers(context.loop), now, SIZE_MAX);
}

TEST(timers_are_cancelled_by_id_and_by_type)
{
    struct actor *actor = new_actor("actor"), *other = new_actor("other");
    uint64_t id = schedule(actor, 1000, 1000, false, "a");

    schedule(actor, 1000, 0, false, "b");
    schedule(actor, 1000, 0, false, "b.c");
    schedule(actor, 1000, 1000, false, "b");
    schedule(other, 1000, 0, false, "b");
    ck_assert_uint_eq(schedule_cancel(&context, id, NULL), 1);
    ck_assert_uint_eq(schedule_cancel(&context, id, NULL), 0);
    ck_assert_uint_eq(schedule_cancel_type(actor, "b", 1, NULL, UINT_MAX), 2);
    ck_assert_uint_eq(schedule_cancel_type(actor, "b", 1, NULL, UINT_MAX), 0);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], 2);
}

TEST(a_timer_is_cancelled_by_who_set_it_and_by_its_recipient)
{
    struct actor *to = new_actor("to"), *setter = new_actor("setter"), *other = new_actor("other");
    uint64_t ids[3];

    for (unsigned i = 0; i < 3; i++) {
        struct schedule_options options = {.to = to, .sender = setter->reference, .at = 1000};
        const struct topic topic = topic_of("t");

        options.topic = &topic;
        ck_assert_int_eq(schedule_add(&context, &options, &ids[i]), 0);
        ck_assert_uint_eq(ids[i], i + 1);
    }
    ck_assert_uint_eq(schedule_cancel(&context, ids[0], other), 0);
    ck_assert_uint_eq(schedule_cancel_type(to, "t", 1, other, UINT_MAX), 0);
    ck_assert_uint_eq(schedule_cancel(&context, ids[0], setter), 1);
    ck_assert_uint_eq(schedule_cancel(&context, ids[1], to), 1);
    ck_assert_uint_eq(schedule_cancel_type(to, "t", 1, setter, UINT_MAX), 1);
}

TEST(what_timers_are_to_tell_is_bounded)
{
    static const char megabyte[1 << 20];
    struct actor *to = new_actor("to"), *setters[9];
    const struct topic topic = topic_of("tick");
    uint64_t id, n = 0;
    char name[16];
    int r = 0;

    for (unsigned i = 0; i < 9; i++) {
        (void)snprintf(name, sizeof(name), "setter%u", i);
        setters[i] = new_actor(name);
    }

    while (r == 0 && n <= SCHEDULES_MEMORY_MAX >> 20) {
        struct payload payload = PAYLOAD_NULL;
        ck_assert_int_eq(payload_set(&payload, megabyte, sizeof(megabyte)), 0);
        r = schedule_add(&context,
                         &(struct schedule_options){.to = to,
                                                    .sender = setters[n % 9]->reference,
                                                    .at = USEC_PER_SEC,
                                                    .topic = &topic,
                                                    .payload = &payload},
                         &id);
        n++;
    }
    ck_assert_int_eq(r, SCHEDULE_E_TOO_MANY);
    ck_assert_uint_gt(n, 450);
    ck_assert_uint_eq(schedule_cancel_type(to, "tick", 4, NULL, UINT_MAX), n - 1);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_BYTES], 0);
}

static int schedule_for(struct actor *setter, struct actor *to, usec_t period, size_t size,
                        uint64_t *ret)
{
    static const char data[1 << 20];
    const struct topic topic = topic_of("tick");
    struct payload payload = PAYLOAD_NULL;
    const struct schedule_options options = {.to = to,
                                             .sender = setter ? setter->reference : 0,
                                             .at = 1000,
                                             .period = period,
                                             .topic = &topic,
                                             .payload = &payload};

    ck_assert_int_eq(payload_set(&payload, data, size), 0);
    return schedule_add(&context, &options, ret);
}

/* How many timers of a group there are; those set from outside have the owner "". */
static uint64_t count_of(const char *owner)
{
    struct share *share = share_get(&context.schedules.shares, owner, strlen(owner));
    const uint64_t n = share->used[SCHEDULE_SHARE_N];

    share_unref(share);
    return n;
}

TEST(no_actor_takes_the_timers_of_others)
{
    struct actor *greedy = new_actor("greedy"), *modest = new_actor("modest");
    usec_t now = loop_now(context.loop);
    uint64_t id;

    for (unsigned i = 0; i < SCHEDULES_PER_ACTOR_MAX; i++)
        ck_assert_int_eq(schedule_for(greedy, modest, 0, 0, &id), 0);
    ck_assert_int_eq(schedule_for(greedy, modest, 0, 0, &id), SCHEDULE_E_SHARE);
    ck_assert_int_eq(schedule_for(greedy, greedy, 0, 0, &id), SCHEDULE_E_SHARE);
    ck_assert_int_eq(schedule_for(modest, greedy, 1000, 0, &id), 0);
    ck_assert_int_eq(schedule_for(NULL, greedy, 1000, 0, &id), 0);
    run_timers(now + 1000); /* they go off, for the last time but for those with a period */
    ck_assert_uint_eq(greedy->timers.n, 0);
    ck_assert_uint_eq(greedy->timers.bytes, 0);
    ck_assert_uint_eq(modest->timers.n, 1);
    ck_assert_uint_eq(count_of(""), 1);
    ck_assert_uint_eq(schedule_cancel(&context, id, NULL), 1);
    ck_assert_uint_eq(count_of(""), 0);
    ck_assert_uint_eq(schedule_cancel_type(greedy, "tick", 4, NULL, UINT_MAX), 1);
    ck_assert_uint_eq(modest->timers.n, 0);
}

TEST(no_actor_takes_the_memory_of_others_timers)
{
    struct actor *greedy = new_actor("greedy"), *modest = new_actor("modest");
    uint64_t id;
    unsigned n = 0;

    while (schedule_for(greedy, modest, 0, 1 << 20, &id) == 0)
        n++;
    ck_assert_uint_eq(n, (SCHEDULES_PER_ACTOR_MEMORY_MAX >> 20) - 1);
    ck_assert_int_eq(schedule_for(greedy, modest, 0, 1 << 20, &id), SCHEDULE_E_SHARE);
    ck_assert_int_eq(schedule_for(modest, modest, 0, 1 << 20, &id), 0);
    actor_end(greedy, "gone"); /* what it has set continues, and counts for its group */
    ck_assert_uint_eq(count_of("greedy"), n);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], n + 1);
    ck_assert_uint_eq(schedule_cancel_type(modest, "tick", 4, NULL, UINT_MAX), n + 1);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_BYTES], 0);
    ck_assert_uint_eq(modest->timers.bytes, 0);
}

TEST(no_group_takes_the_timers_of_others)
{
    struct actor *modest = new_actor("modest");
    unsigned n = 0;
    uint64_t id;
    char name[16];

    for (unsigned i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof(name), "greedy/%u", i);
        struct actor *greedy = new_actor(name);
        for (unsigned k = 0; k < 10; k++)
            n += schedule_for(greedy, modest, SCHEDULE_PERIOD_MIN, 0, &id) == 0;
    }
    /* Half, and the first one of each, which is not refused because of others. */
    ck_assert_uint_eq(n, 25 + 3);
    for (unsigned k = 0; k < 10; k++)
        ck_assert_int_eq(schedule_for(modest, modest, SCHEDULE_PERIOD_MIN, 0, &id), 0);
    ck_assert_uint_eq(count_of("greedy"), n);
    ck_assert_uint_eq(count_of("modest"), 10);
}

TEST(a_date_follows_the_wall_clock)
{
    struct actor *actor = new_actor("actor");
    usec_t now = loop_now(context.loop);

    schedule(actor, wall + 3600 * USEC_PER_SEC, 0, true, "date");
    run_timers(now + USEC_PER_SEC);
    ck_assert_str_eq(waiting(actor), "");
    wall += 3600 * USEC_PER_SEC;
    alarms_review(context.alarms);
    run_timers(now + 2 * USEC_PER_SEC);
    ck_assert_str_eq(waiting(actor), "date ");
}

TEST(a_type_is_cancelled_by_looking_at_its_own_timers)
{
    struct actor *actor = new_actor("actor");
    char type[16];

    for (unsigned i = 0; i < 10000; i++) {
        (void)snprintf(type, sizeof(type), "type.%u", i);
        schedule(actor, 1000, 0, false, type);
    }
    schedule(actor, 2000, 0, false, "type.17");
    ck_assert_uint_le(longest(&actor->scheduled->by_type), 24);
    ck_assert_uint_eq(schedule_cancel_type(actor, "type.17", 7, NULL, UINT_MAX), 2);
    ck_assert_uint_eq(schedule_cancel_type(actor, "type.17", 7, NULL, UINT_MAX), 0);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], 9999);
}

TEST(C6_a_periodic_timer_does_not_catch_up_on_missed_periods)
{
    struct actor *actor = new_actor("actor");
    usec_t now = loop_now(context.loop);
    uint64_t id = schedule(actor, wall + 1000, 1000, true, "beat");

    wall += 10500; /* nine and a half periods too late */
    alarms_review(context.alarms);
    run_timers(now + 20000);
    ck_assert_str_eq(waiting(actor), "beat ");
    wall += 499;
    run_timers(now + 40000);
    ck_assert_str_eq(waiting(actor), "beat ");
    wall += 1; /* in step with the beginning */
    run_timers(now + 60000);
    ck_assert_str_eq(waiting(actor), "beat beat ");
    ck_assert_uint_eq(schedule_cancel(&context, id, NULL), 1);
}

TEST(many_timers_of_a_recipient_that_has_ended_are_freed_over_many_turns)
{
    struct actor *actor = new_actor("actor"), *other = new_actor("other");
    const uint64_t first = schedule(actor, 1000, 1000, false, "a");
    unsigned turns = 0;

    for (unsigned i = 0; i < 20000; i++)
        schedule(actor, USEC_PER_SEC, 0, false, "a");
    schedule(other, USEC_PER_SEC, 0, false, "a");
    actor_end(actor, "gone");
    ck_assert_uint_gt(context.schedules.shares.used[SCHEDULE_SHARE_N], 19000);
    ck_assert_uint_eq(schedule_cancel(&context, first, NULL), 0);
    for (; context.schedules.shares.used[SCHEDULE_SHARE_N] > 1; turns++) {
        const uint64_t n_before = context.schedules.shares.used[SCHEDULE_SHARE_N];

        fake_peer_turns(context.loop, 1);
        ck_assert_uint_lt(context.schedules.shares.used[SCHEDULE_SHARE_N], n_before);
        ck_assert_uint_le(n_before - context.schedules.shares.used[SCHEDULE_SHARE_N], 2000);
    }
    ck_assert_uint_ge(turns, 10);
    ck_assert_uint_eq(schedule_count_for(other), 1);
}

TEST(timers_of_many_recipients_that_end_in_a_turn_are_freed_over_many_turns)
{
    struct actor *actors[40];

    for (unsigned i = 0; i < 40; i++) {
        actors[i] = new_actor("actor");
        for (unsigned j = 0; j < 250; j++)
            schedule(actors[i], USEC_PER_SEC, 0, false, "a");
    }
    for (unsigned i = 0; i < 40; i++)
        actor_end(actors[i], "gone");
    ck_assert_uint_gt(context.schedules.shares.used[SCHEDULE_SHARE_N], 8000);
    fake_peer_turns(context.loop, 30);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], 0);
}

TEST(timers_of_a_recipient_that_has_ended_do_not_go_off)
{
    struct actor *actor = new_actor("actor");
    const usec_t now = loop_now(context.loop);

    for (unsigned i = 0; i < 2000; i++)
        schedule(actor, 1000, i % 500 == 0 ? 1000 : 0, false, "a");
    actor_end(actor, "gone");
    ck_assert_uint_gt(context.schedules.shares.used[SCHEDULE_SHARE_N], 1000);
    run_timers(now + 5000);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], 0);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_BEATS], 0);
}

TEST(periodic_timers_of_one_setter_fire_so_often_and_no_more)
{
    struct actor *owner = new_actor("owner"), *to = new_actor("to");
    const struct topic topic = topic_of("beat");
    struct schedule_options options = {
        .to = to, .sender = owner->reference, .at = 1000, .period = 1000, .topic = &topic};
    uint64_t id;

    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    ck_assert_int_eq(schedule_add(&context, &options, &id), SCHEDULE_E_SHARE);
    ck_assert_uint_eq(schedule_cancel(&context, id, NULL), 1);
    options.period = 10000;
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    ck_assert_int_eq(schedule_add(&context, &options, &id), SCHEDULE_E_SHARE);
    options.sender = 0;
    options.period = 1000;
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    ck_assert_int_eq(schedule_add(&context, &options, &id), SCHEDULE_E_TOO_MANY);
    actor_end(owner, "gone"); /* its timers continue, and count */
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_BEATS], 30 * UINT64_C(1000000));
    schedule_forget(to);
    fake_peer_turns(context.loop, 1);
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_BEATS], 0);
}

TEST(a_setter_of_few_beats_is_not_refused_because_of_the_others)
{
    struct actor *to = new_actor("to"), *modest = new_actor("modest");
    const struct topic topic = topic_of("beat");
    struct schedule_options options = {.to = to, .at = 1000, .period = 1000, .topic = &topic};
    uint64_t id;

    for (unsigned i = 0; i < 50; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "greedy%u", i);
        options.sender = new_actor(name)->reference;
        while (schedule_add(&context, &options, &id) == 0)
            ;
    }
    options.sender = modest->reference;
    ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    ck_assert_int_eq(schedule_add(&context, &options, &id), SCHEDULE_E_TOO_MANY);
    schedule_forget(to);
    fake_peer_turns(context.loop, 1);
}

/* ---- the message log ---- */

static char logged[1024];

/* "LEVEL NAME=VALUE …" of each line, and a newline. */
static void note_line(enum log_level level, struct log_fields fields, const char *message)
{
    size_t used = strlen(logged);

    used += (size_t)snprintf(logged + used, sizeof(logged) - used, "%d", (int)level);
    for (size_t i = 0; i < fields.n_fields; i++)
        if (fields.fields[i].value)
            used += (size_t)snprintf(logged + used, sizeof(logged) - used, " %s=%s",
                                     fields.fields[i].name, fields.fields[i].value);
    (void)snprintf(logged + used, sizeof(logged) - used, "\n");
}

TEST(C8_the_message_log_is_structured_fields_and_off_until_it_is_switched_on)
{
    struct actor *from = new_actor("from"), *to = new_actor("to");
    const struct router_message message = {
        .sender = from->reference, .to = to->reference, .topic = topic_of("order.new")};

    log_init("test", LOG_LEVEL_DEBUG);
    log_set_sink(note_line);
    logged[0] = '\0';
    ck_assert_int_eq(router_tell(&context, &message), 0);
    ck_assert_str_eq(logged, "");
    to->log = ACTOR_LOG_ENQUEUED;
    ck_assert_int_eq(router_tell(&context, &message), 0);
    ck_assert_str_eq(logged, "7 TROUPE_ACTOR=to TROUPE_SENDER=from TROUPE_MESSAGE=2 "
                             "TROUPE_TYPE=order.new\n");
    to->log = 0;
    ck_assert_int_eq(router_tell(&context, &message), 0);
    log_set_sink(NULL);
    log_init("test", LOG_LEVEL_ERROR);
    ck_assert_ptr_eq(strchr(logged, '\n'), strrchr(logged, '\n'));
}

const struct suite suite = {.setup = setup, .teardown = teardown};
