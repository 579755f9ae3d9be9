/* SPDX-License-Identifier: MIT */

/* Records of a sender with rings; its recipients have none. */

#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/request/actor-request.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/message/message-fixture.h"
#include "tests/unit/suite.h"

#define MAILBOX_MAX 4u
#define N_ACTORS    3u

static struct message_context context;
static struct fake_peer peer;
static struct actor *sender, *actors[N_ACTORS], *post;
static uint64_t blobs_sent;

static int on_record(struct endpoint *endpoint, const struct ring_record *record)
{
    return actor_request_on_record(sender, record);
}

static void on_broken(struct endpoint *endpoint, const char *what)
{
    ck_abort_msg("%s", what);
}

static unsigned n_drainable;

static void on_drainable(struct endpoint *endpoint)
{
    n_drainable++;
}

static const struct endpoint_handler HANDLER = {
    .record = on_record, .drainable = on_drainable, .broken = on_broken};

static struct actor_policy get_policy(const struct actor *actor)
{
    return (struct actor_policy){.mailbox_max = MAILBOX_MAX,
                                 .mailbox_memory_max = 1 << 20,
                                 .overflow = CONFIG_OVERFLOW_BLOCK};
}

static const struct actor_class CLIENT = {
    .kind = ACTOR_CLIENT,
    .deliver = delivery_to_inbox,
    .feed = delivery_feed_inbox,
    .policy = get_policy,
};

static struct actor *new_actor(const char *name)
{
    return make_actor(&context, &CLIENT, name);
}

static struct actor *new_exchange(const char *name, enum exchange_kind kind)
{
    struct actor *actor;

    ck_assert_int_eq(exchange_actor_new(&actor, &context, name, kind, false), 0);
    return actor;
}

static void setup(void)
{
    const struct endpoint_options sizes = {.ring_size = 1 << 16, .inline_max = 1 << 12};

    set_up_messages(&context);
    fake_peer_open(&peer, context.loop, &sizes, &HANDLER);
    ck_assert_int_eq(endpoint_open(&peer.endpoint), 0);
    sender = new_actor("sender");
    delivery_attach(sender, &peer.endpoint);
    for (unsigned i = 0; i < N_ACTORS; i++)
        actors[i] = new_actor("actor");
    post = new_exchange("post", EXCHANGE_SINGLE);
    blobs_sent = 0;
}

static void teardown(void)
{
    actor_end(sender, "the test is over");
    fake_peer_close(&peer);
    tear_down_messages(&context);
}

/* ---- what the sender does ---- */

static void publish(enum protocol_actor_kind kind, const void *body, int size)
{
    void *room;

    ck_assert_int_gt(size, 0);
    ck_assert_int_eq(ring_reserve(&peer.channel.out, (uint32_t)size, &room), 0);
    memcpy(room, body, (size_t)size);
    ring_commit(&peer.channel.out, (uint16_t)kind, (uint32_t)size);
    channel_publish(&peer.channel);
}

static void commit(enum protocol_actor_kind kind, const void *body, int size)
{
    publish(kind, body, size);
    fake_peer_turns(context.loop, 3);
}

static void tell(const struct actor *to, const char *type)
{
    const struct protocol_tell tell = {
        .to = to->reference,
        .content = {.topic = {.type = type, .type_size = (uint32_t)strlen(type)},
                    .payload = {.form = PAYLOAD_INLINE, .data = "x", .size = 1}}};
    uint8_t body[512];

    commit(PROTOCOL_TELL, body, protocol_put_tell(body, sizeof(body), &tell));
}

static void tell_blob(const struct actor *to, size_t size)
{
    struct protocol_tell tell = {.to = to->reference,
                                 .content = {.topic = {.type = "blob", .type_size = 4},
                                             .payload = {.form = PAYLOAD_BLOB, .size = size}}};
    void *data = calloc(1, size);
    uint8_t body[512];
    int fd;

    ck_assert_ptr_nonnull(data);
    ck_assert_int_eq(payload_blob_copy(data, size, &fd), 0);
    tell.content.payload.serial = ++blobs_sent;
    ck_assert_int_eq(payload_send_fd(peer.control, fd, blobs_sent), 0);
    close(fd);
    free(data);
    commit(PROTOCOL_TELL, body, protocol_put_tell(body, sizeof(body), &tell));
}

static void ask(const struct actor *to)
{
    const struct protocol_ask ask = {.to = to->reference,
                                     .cookie = 1,
                                     .timeout = USEC_INFINITY,
                                     .wanted = "",
                                     .content = {.topic = {.type = "a", .type_size = 1},
                                                 .payload = {.form = PAYLOAD_INLINE, .data = ""}}};
    uint8_t body[512];

    commit(PROTOCOL_ASK, body, protocol_put_ask(body, sizeof(body), &ask));
}

static bool waits(void)
{
    fake_peer_turns(context.loop, 5);
    return ring_pending(&peer.endpoint.channel.in);
}

/* ---- what the others do ---- */

static void subscribe(const struct actor *exchange, struct actor *actor, const char *type)
{
    const struct topic topic = topic_of(type);

    ck_assert_int_eq(exchange_subscribe(exchange->owner, &actor->subscriptions, &topic), 0);
}

static bool unsubscribe(const struct actor *exchange, struct actor *actor, const char *type)
{
    const struct topic topic = topic_of(type);

    return exchange_unsubscribe(exchange->owner, &actor->subscriptions, &topic);
}

/* Handles what waits for an actor; its number. */
static uint64_t handle(struct actor *actor, uint64_t max)
{
    struct envelope *envelope;
    uint64_t n = 0;

    for (; n < max && (envelope = mailbox_oldest(&actor->mailbox)); n++) {
        mailbox_take(&actor->mailbox, envelope);
        envelope_free(envelope);
    }
    actor_wake(actor);
    return n;
}

static uint64_t dead(enum dead_letter_reason reason)
{
    return context.dead_letters.tally->counts[reason];
}

static uint64_t all_dead(void)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < _DEAD_N_REASONS; i++)
        n += context.dead_letters.tally->counts[i];
    return n;
}

/* Tells until the recipient's mailbox is full, and once more. */
static void fill(const struct actor *exchange, const char *type)
{
    for (unsigned i = 0; i < MAILBOX_MAX; i++)
        tell(exchange, type);
    ck_assert(!waits());
    tell(exchange, type);
}

TEST(a_sender_waits_behind_an_exchange_with_one_recipient_until_there_is_room)
{
    struct actor *first = new_exchange("first", EXCHANGE_TYPED_SINGLE);

    subscribe(post, actors[0], "");
    subscribe(first, post, "");
    fill(first, "a");
    ck_assert(waits());
    ck_assert_uint_eq(actors[0]->mailbox.n, MAILBOX_MAX);
    ck_assert_uint_eq(handle(actors[0], 1), 1);
    ck_assert(!waits());
    ck_assert_uint_eq(actors[0]->mailbox.n, MAILBOX_MAX);
    ck_assert_uint_eq(all_dead(), 0);
}

TEST(a_waiting_sender_is_released_when_its_recipient_unsubscribes)
{
    subscribe(post, actors[0], "");
    fill(post, "a");
    ck_assert(waits());
    ck_assert(unsubscribe(post, actors[0], ""));
    ck_assert(!waits());
    ck_assert_uint_eq(dead(DEAD_NO_MATCH), 1);
}

TEST(a_waiting_sender_is_released_when_its_recipient_is_gone)
{
    subscribe(post, actors[0], "");
    fill(post, "a");
    ck_assert(waits());
    actor_end(actors[0], "gone");
    ck_assert(!waits());
    ck_assert_uint_eq(dead(DEAD_GONE), MAILBOX_MAX);
    ck_assert_uint_eq(dead(DEAD_NO_MATCH), 1);
}

TEST(a_waiting_sender_is_released_when_the_exchange_is_deleted)
{
    subscribe(post, actors[0], "");
    fill(post, "a");
    ck_assert(waits());
    actor_end(post, "deleted");
    ck_assert(!waits());
    ck_assert_uint_eq(dead(DEAD_GONE), 1);
}

TEST(a_waiting_sender_is_released_when_an_exchange_on_the_way_is_deleted)
{
    struct actor *first = new_exchange("first", EXCHANGE_SINGLE);

    subscribe(first, post, "");
    subscribe(post, actors[0], "");
    fill(first, "a");
    ck_assert(waits());
    actor_end(post, "deleted");
    ck_assert(!waits());
    ck_assert_uint_eq(dead(DEAD_NO_MATCH), 1);
}

TEST(a_waiting_sender_goes_on_to_whoever_takes_the_subscription_over)
{
    subscribe(post, actors[0], "");
    fill(post, "a");
    ck_assert(waits());
    subscribe(post, actors[1], "");
    ck_assert(!waits());
    ck_assert_uint_eq(actors[1]->mailbox.n, 1);
    ck_assert_uint_eq(all_dead(), 0);
}

TEST(a_waiting_sender_goes_on_to_a_subscriber_of_the_exact_type)
{
    struct actor *typed = new_exchange("typed", EXCHANGE_TYPED_SINGLE);

    subscribe(typed, actors[0], "a");
    fill(typed, "a.b");
    ck_assert(waits());
    subscribe(typed, actors[1], "a.b");
    ck_assert(!waits());
    ck_assert_uint_eq(actors[1]->mailbox.n, 1);
}

TEST(a_waiting_ask_fails_when_nobody_is_subscribed_any_more)
{
    subscribe(post, actors[0], "");
    for (unsigned i = 0; i < MAILBOX_MAX; i++)
        tell(post, "a");
    ask(post);
    ck_assert(waits());
    ck_assert(unsubscribe(post, actors[0], ""));
    ck_assert(!waits());
    ck_assert_uint_eq(dead(DEAD_NO_MATCH), 1);
    ck_assert_uint_eq(sender->n_asks, 0);
}

TEST(a_copy_that_finds_no_room_holds_up_neither_the_sender_nor_the_other_copies)
{
    struct actor *many = new_exchange("many", EXCHANGE_TYPED_MULTI);

    subscribe(many, actors[0], "");
    subscribe(many, actors[1], "");
    for (unsigned i = 0; i < MAILBOX_MAX; i++)
        tell(actors[0], "own");
    tell(many, "a");
    ck_assert(!waits());
    ck_assert_uint_eq(actors[0]->mailbox.n, MAILBOX_MAX);
    ck_assert_uint_eq(actors[1]->mailbox.n, 1);
    ck_assert_uint_eq(dead(DEAD_MAILBOX_FULL), 1);
    ck_assert_uint_eq(all_dead(), 1);
}

TEST(what_waited_for_a_paused_exchange_goes_on_as_there_is_room)
{
    subscribe(post, actors[0], "");
    delivery_pause(post);
    for (unsigned i = 0; i < 3 * MAILBOX_MAX; i++)
        tell(post, "a");
    delivery_resume(post);
    for (unsigned i = 0; i < 3; i++) {
        fake_peer_turns(context.loop, 5);
        ck_assert_uint_eq(handle(actors[0], UINT64_MAX), MAILBOX_MAX);
    }
    ck_assert_uint_eq(all_dead(), 0);
}

TEST(a_large_message_waits_for_the_room_that_it_needs)
{
    tell_blob(actors[0], 600000);
    tell_blob(actors[0], 600000);
    ck_assert(waits());
    ck_assert_uint_eq(handle(actors[0], 1), 1);
    ck_assert(!waits());
    ck_assert_uint_eq(actors[0]->mailbox.n, 1);
    ck_assert_uint_eq(all_dead(), 0);
}

TEST(exchanges_in_a_circle_hold_nobody_up)
{
    struct actor *other = new_exchange("other", EXCHANGE_SINGLE);

    subscribe(post, other, "");
    subscribe(other, post, "");
    tell(post, "a");
    ck_assert(!waits());
    ck_assert_uint_eq(dead(DEAD_LOOP), 1);
}

TEST(exchanges_are_deleted_one_in_a_turn)
{
    struct actor *other = new_exchange("other", EXCHANGE_SINGLE);
    const uint64_t first = post->reference, second = other->reference;

    for (unsigned i = 0; i < 2; i++) {
        const struct protocol_by_reference by = {.reference = i == 0 ? first : second};
        uint8_t body[64];
        const int size = protocol_put_by_reference(body, sizeof(body), &by);
        void *room;

        ck_assert_int_eq(ring_reserve(&peer.channel.out, (uint32_t)size, &room), 0);
        memcpy(room, body, (size_t)size);
        ring_commit(&peer.channel.out, PROTOCOL_EXCHANGE_DELETE, (uint32_t)size);
    }
    channel_publish(&peer.channel);
    while (actor_get(&context, first))
        fake_peer_turns(context.loop, 1);
    ck_assert_ptr_nonnull(actor_get(&context, second));
    ck_assert(!waits());
    ck_assert_ptr_null(actor_get(&context, second));
}

/* ---- exchanges that copy ---- */

enum {
    N_SUBSCRIBERS = 100,
    N_TOLD = 400
};

/* Tells the exchange N_TOLD messages with one wake-up. */
static void tell_many(const struct actor *to)
{
    const struct protocol_tell tell = {
        .to = to->reference,
        .content = {.topic = {.type = "t", .type_size = 1},
                    .payload = {.form = PAYLOAD_INLINE, .data = "x", .size = 1}}};
    uint8_t body[256];
    const int size = protocol_put_tell(body, sizeof(body), &tell);
    void *room;

    for (unsigned i = 0; i < N_TOLD; i++) {
        ck_assert_int_eq(ring_reserve(&peer.channel.out, (uint32_t)size, &room), 0);
        memcpy(room, body, (size_t)size);
        ring_commit(&peer.channel.out, PROTOCOL_TELL, (uint32_t)size);
    }
    channel_publish(&peer.channel);
}

TEST(exchanges_of_one_creator_share_the_bounds_of_a_mailbox)
{
    struct actor *made[EXCHANGES_PER_ACTOR_MAX], *more;
    char name[16];

    for (unsigned i = 0; i < EXCHANGES_PER_ACTOR_MAX; i++) {
        (void)snprintf(name, sizeof(name), "made-%u", i);
        ck_assert_int_eq(exchange_actor_make(&made[i], sender, name, EXCHANGE_SINGLE), 0);
    }
    ck_assert_int_eq(exchange_actor_make(&more, sender, "more", EXCHANGE_SINGLE), ACTOR_E_TOO_MANY);
    made[0]->mailbox.n = 9999;
    ck_assert(actor_has_room(made[1], 0));
    made[1]->mailbox.n = 1;
    ck_assert(!actor_has_room(made[1], 0));
    ck_assert(!actor_has_room(made[0], 0));
    ck_assert(actor_has_room(post, 0));
    made[1]->mailbox.bytes = UINT64_C(64) << 20;
    ck_assert_uint_eq(actor_policy(made[2]).mailbox_memory_max, 0);
    exchange_actor_disown(made[0]);
    made[1]->mailbox.bytes = 0;
    ck_assert(actor_has_room(made[1], 0));
    made[0]->mailbox.n = made[1]->mailbox.n = 0;
    actor_end(made[1], "it was deleted");
    ck_assert_int_eq(exchange_actor_make(&more, sender, "more", EXCHANGE_SINGLE), 0);
}

static struct actor *new_wide_exchange(struct actor *subscribers[N_SUBSCRIBERS])
{
    struct actor *wide = new_exchange("wide", EXCHANGE_TYPED_MULTI);

    for (unsigned i = 0; i < N_SUBSCRIBERS; i++) {
        subscribers[i] = new_actor("subscriber");
        subscribe(wide, subscribers[i], "");
    }
    return wide;
}

static uint64_t count_copies(struct actor *const subscribers[N_SUBSCRIBERS])
{
    uint64_t n = dead(DEAD_MAILBOX_FULL);

    for (unsigned i = 0; i < N_SUBSCRIBERS; i++)
        n += subscribers[i]->mailbox.n;
    return n;
}

TEST(a_sender_waits_while_an_exchange_is_behind_with_its_copies)
{
    struct actor *subscribers[N_SUBSCRIBERS], *wide = new_wide_exchange(subscribers);
    uint64_t copies = 0;

    tell_many(wide);
    for (unsigned turns = 0; copies < N_TOLD * N_SUBSCRIBERS; turns++) {
        const uint64_t n_before = copies;

        ck_assert_uint_lt(turns, N_TOLD);
        fake_peer_turns(context.loop, 1);
        copies = count_copies(subscribers);
        ck_assert_uint_le(copies - n_before, 1000);
        ck_assert_uint_le(wide->mailbox.n, 1);
    }
    ck_assert_uint_eq(copies, N_TOLD * N_SUBSCRIBERS);
    ck_assert(!waits());
}

TEST(what_a_dead_sender_has_told_an_exchange_is_copied_over_many_turns)
{
    struct actor *subscribers[N_SUBSCRIBERS], *wide = new_wide_exchange(subscribers);

    tell_many(wide);
    endpoint_drain(&peer.endpoint);
    ck_assert_uint_le(count_copies(subscribers), 500);
    for (unsigned i = 0; i < N_TOLD && !mailbox_idle(&wide->mailbox); i++)
        fake_peer_turns(context.loop, 1);
    ck_assert_uint_eq(count_copies(subscribers), N_TOLD * N_SUBSCRIBERS);
}

/* ---- timers ---- */

TEST(timers_of_a_type_are_cancelled_over_many_turns_and_all_are_counted)
{
    const struct topic topic = topic_of("tick");
    const struct schedule_options options = {
        .to = actors[0], .sender = sender->reference, .at = USEC_PER_SEC, .topic = &topic};
    const struct protocol_timer_cancel cancel = {
        .cookie = 7, .to = actors[0]->reference, .type = "tick", .type_size = 4};
    struct protocol_answer answer;
    struct ring_record record;
    uint8_t body[512];
    uint64_t id;

    for (unsigned i = 0; i < 5000; i++)
        ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    commit(PROTOCOL_TIMER_CANCEL, body, protocol_put_timer_cancel(body, sizeof(body), &cancel));
    ck_assert_uint_gt(context.schedules.shares.used[SCHEDULE_SHARE_N], 3000);
    while (waits())
        ;
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], 0);
    ck_assert_int_eq(ring_next(&peer.channel.in, &record), 0);
    ck_assert_int_eq(protocol_get_answer(record.body, record.size, &answer), 0);
    ck_assert_uint_eq(answer.cookie, 7);
    ck_assert_uint_eq(answer.value, 5000);
    ck_assert_int_ne(ring_next(&peer.channel.in, &record), 0);
}

TEST(timers_that_a_dead_worker_has_cancelled_end_over_many_turns)
{
    const struct topic topic = topic_of("tick");
    const struct schedule_options options = {
        .to = actors[0], .sender = sender->reference, .at = USEC_PER_SEC, .topic = &topic};
    const struct protocol_timer_cancel cancel = {
        .cookie = 7, .to = actors[0]->reference, .type = "tick", .type_size = 4};
    uint8_t body[512];
    uint64_t id;

    for (unsigned i = 0; i < 5000; i++)
        ck_assert_int_eq(schedule_add(&context, &options, &id), 0);
    publish(PROTOCOL_TIMER_CANCEL, body, protocol_put_timer_cancel(body, sizeof(body), &cancel));
    n_drainable = 0;
    for (uint64_t n_before = 5000; !endpoint_drain(&peer.endpoint);) {
        ck_assert_uint_eq(n_drainable, 1);
        ck_assert_uint_le(n_before - context.schedules.shares.used[SCHEDULE_SHARE_N], 1000);
        n_before = context.schedules.shares.used[SCHEDULE_SHARE_N];
        n_drainable = 0;
    }
    ck_assert_uint_eq(context.schedules.shares.used[SCHEDULE_SHARE_N], 0);
}

static unsigned random_below(unsigned n)
{
    return (unsigned)rand() % n;
}

TEST(whatever_is_subscribed_and_told_leaves_no_sender_waiting_and_no_message_lost)
{
    static const char *const TYPES[] = {"", "a", "a.b"};
    const char *fixed = getenv("TROUPE_SEED");
    const unsigned seed = fixed ? (unsigned)strtoul(fixed, NULL, 0) : (unsigned)time(NULL);
    struct actor *exchanges[] = {post, new_exchange("typed", EXCHANGE_TYPED_SINGLE),
                                 new_exchange("other", EXCHANGE_SINGLE)};
    uint64_t n_told = 0, n_handled = 0;

    printf("TROUPE_SEED=%u\n", seed);
    srand(seed);
    for (unsigned i = 0; i < 5000; i++) {
        const unsigned which = random_below(N_ACTORS), from = random_below(3);
        const char *type = TYPES[random_below(3)];

        switch (random_below(8)) {
        case 0:
            subscribe(exchanges[from], actors[which], type);
            break;
        case 1:
            subscribe(exchanges[from], exchanges[random_below(3)], type);
            break;
        case 2:
            (void)unsubscribe(exchanges[from], actors[which], type);
            break;
        case 3:
            n_handled += handle(actors[which], random_below(MAILBOX_MAX + 1));
            break;
        case 4:
            if (random_below(8) == 0) {
                actor_end(actors[which], "gone");
                actors[which] = new_actor("actor");
            }
            break;
        default:
            if (!ring_pending(&peer.endpoint.channel.in)) {
                tell(exchanges[from], type);
                n_told++;
            }
        }
        fake_peer_turns(context.loop, 2);
    }
    for (unsigned i = 0; i < N_ACTORS; i++)
        n_handled += handle(actors[i], UINT64_MAX);
    ck_assert(!waits());
    for (unsigned i = 0; i < N_ACTORS; i++)
        n_handled += handle(actors[i], UINT64_MAX);
    ck_assert_uint_eq(n_handled + all_dead(), n_told);
    ck_assert_uint_eq(dead(DEAD_MAILBOX_FULL), 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
