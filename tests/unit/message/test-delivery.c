/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/held-blob.h"
#include "supervisor/event/death.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/delivery/delivery.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/message/message-fixture.h"
#include "tests/unit/suite.h"
#include <stdlib.h>

/* An actor and the rings of its worker, which lives in this process. */

#define RING_SIZE   (UINT32_C(1) << 20)
#define FILLER_SIZE (UINT32_C(1) << 18)
#define FILLER_KIND 5

static struct message_context context;
static struct fake_peer peer;
static struct actor *actor;

static void on_consumed(struct endpoint *self, const struct ring_record *record, uint32_t cursor)
{
    delivery_on_consumed(actor, record, cursor);
}

static bool may_break;
static const char *broken;

static void on_broken(struct endpoint *self, const char *what)
{
    ck_assert_msg(may_break, "%s", what);
    broken = what;
}

static const struct endpoint_handler HANDLER = {.consumed = on_consumed, .broken = on_broken};

static struct actor_policy get_policy(const struct actor *self)
{
    return (struct actor_policy){.mailbox_max = 1,
                                 .mailbox_memory_max = 1 << 20,
                                 .overflow = CONFIG_OVERFLOW_BLOCK,
                                 .on_crash = CONFIG_ON_CRASH_ERROR_QUEUE};
}

static const struct actor_class NARROW_CLIENT = {
    .kind = ACTOR_CLIENT,
    .deliver = delivery_to_inbox,
    .feed = delivery_feed_inbox,
    .policy = get_policy,
};

static void setup(void)
{
    const struct endpoint_options sizes = {.ring_size = RING_SIZE, .inline_max = FILLER_SIZE};

    set_up_messages(&context);
    fake_peer_open(&peer, context.loop, &sizes, &HANDLER);
    actor = make_actor(&context, &INBOX, "actor");
    delivery_attach(actor, &peer.endpoint);
    delivery_set_up(actor, true);
}

static void teardown(void)
{
    actor_end(actor, "the test is over");
    fake_peer_close(&peer);
    tear_down_messages(&context);
}

/* As a worker that handles everything at once, and has nothing to say about it. */
static void consume_all(void)
{
    struct ring_record record;

    channel_publish(&peer.endpoint.channel);
    while (ring_next(&peer.channel.in, &record) == 0)
        ;
    channel_release(&peer.channel);
    ck_assert(endpoint_advance(&peer.endpoint));
}

/* Lets that many bytes go through its inbox. */
static void pass(uint64_t bytes)
{
    void *body;

    for (uint64_t done = 0; done < bytes; done += FILLER_SIZE) {
        ck_assert_int_eq(endpoint_reserve(&peer.endpoint, FILLER_SIZE, &body), 0);
        endpoint_commit(&peer.endpoint, FILLER_KIND, FILLER_SIZE);
        consume_all();
    }
}

/* Its id. */
static uint64_t send_message(const char *type)
{
    const struct topic topic = topic_of(type);
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, &topic);
    const uint64_t id = message_context_next_id(&context);

    ck_assert_ptr_nonnull(envelope);
    envelope->id = id;
    ck_assert_int_eq(delivery_send(actor, envelope), 0);
    return id;
}

static void send_and_consume(const char *type)
{
    (void)send_message(type);
    consume_all();
}

TEST(results_that_a_client_does_not_read_leave_room_for_those_of_others)
{
    static const char bytes[20000];
    struct payload result = PAYLOAD_NULL;
    struct protocol_done done = {.cookie = 1};
    struct blob_quota quota;
    struct blob_share *other;

    blob_quota_init(&quota);
    quota.bytes_max = 400000;
    peer.endpoint.blobs = blob_share_new(&quota);
    other = blob_share_new(&quota);
    ck_assert_int_eq(payload_set(&result, bytes, sizeof(bytes)), 0);
    may_break = true;
    broken = NULL;
    for (unsigned i = 0; i < 200 && !broken; i++)
        delivery_answer_end(actor, &done, &result, 0);
    ck_assert_ptr_nonnull(broken);
    ck_assert_uint_ge(quota.bytes, 160000);
    ck_assert(blob_share_has_room(other, sizeof(bytes)));
    ck_assert(!actor_answer_fits(actor, sizeof(bytes))); /* nor do replies */
    ck_assert(delivery_drop_answers(actor, SIZE_MAX));
    ck_assert_uint_eq(quota.bytes, 0);
    peer.endpoint.blobs = blob_share_unref(peer.endpoint.blobs);
    (void)blob_share_unref(other);
    payload_deinit(&result);
}

TEST(a_message_in_hand_is_found_once_and_those_before_it_no_more)
{
    const uint64_t first = send_message("first"), second = send_message("second");
    struct envelope *envelope;

    ck_assert_int_eq(delivery_claim(actor, second, &envelope), 0);
    ck_assert_mem_eq(envelope->topic.type, "second", 6);
    envelope_free(envelope);
    ck_assert_int_eq(delivery_claim(actor, second, &envelope), -EBADMSG);
    ck_assert_int_eq(delivery_claim(actor, first, &envelope), -EBADMSG);
}

/* Cursors run freely and come round: after 2 GiB what was never set lies ahead. */
TEST(a_message_in_hand_is_found_however_much_came_before_it)
{
    for (unsigned i = 0; i < 3; i++) {
        struct envelope *envelope;

        pass((UINT64_C(1) << 31) + FILLER_SIZE);
        uint64_t id = send_message("late");
        ck_assert_int_eq(delivery_claim(actor, id, &envelope), 0);
        ck_assert_uint_eq(envelope->id, id);
        envelope_free(envelope);
        consume_all();
    }
}

TEST(what_a_dead_worker_left_waits_for_the_next_however_much_came_before_it)
{
    send_and_consume("early");
    pass((UINT64_C(1) << 31) + FILLER_SIZE);
    (void)send_message("late");
    delivery_recover(actor, NULL);
    ck_assert_uint_eq(actor->mailbox.n, 1);
}

/* The dead worker may have no successor that would feed from the mailbox, and so wake them. */
TEST(senders_that_wait_go_on_when_a_death_makes_room_in_the_stash)
{
    const uint64_t id = send_message("stashed");
    struct actor *sender = make_actor(&context, &INBOX, "sender");

    actor->class = &NARROW_CLIENT;
    ck_assert_int_eq(
        delivery_stash(actor,
                       &(struct protocol_stash){.message = id, .flags = PROTOCOL_STASH_IN_HAND}),
        0);
    consume_all();
    ck_assert(!actor_has_room(actor, 0));
    fake_peer_turns(context.loop, 2);
    actor_block(sender, actor, false);
    delivery_recover(actor, NULL);
    ck_assert(actor_has_room(actor, 0));
    fake_peer_turns(context.loop, 2);
    ck_assert(!list_linked(&sender->blocked_link));
    actor_end(sender, "the test is over");
}

/* Adds a report of a worker that had this message in hand. Borrowed. */
static struct death *die(uint64_t message)
{
    struct death *death = death_new(context.deaths);

    ck_assert_ptr_nonnull(death);
    death->messages = calloc(1, sizeof(*death->messages));
    ck_assert_ptr_nonnull(death->messages);
    death->messages->id = message;
    death->n_messages = 1;
    death_log_add(context.deaths, death);
    death_unref(death);
    return death;
}

/* It lists 16: a search for each of thousands that a worker has in hand would take long. */
TEST(only_for_messages_that_the_report_lists_earlier_deaths_are_searched)
{
    const uint64_t listed = send_message("listed"), beyond = send_message("beyond");
    struct death *first, *last;

    death_log_resize(context.deaths, 3);
    actor->class = &NARROW_CLIENT;
    for (uint64_t id = listed; id <= beyond; id++)
        ck_assert_int_eq(
            delivery_stash(
                actor, &(struct protocol_stash){.message = id, .flags = PROTOCOL_STASH_IN_HAND}),
            0);
    consume_all();
    first = die(listed);
    (void)die(beyond);
    last = die(listed);
    delivery_recover(actor, last);
    list_for_each (node, &context.dead_letters.rings[DEAD_ERRORS]) {
        const struct dead_letter *letter = list_entry(node, struct dead_letter, link);

        ck_assert_uint_eq(letter->n_deaths, letter->message == listed ? 2 : 1);
        ck_assert_ptr_eq(letter->deaths[0], letter->message == listed ? first : last);
        ck_assert_ptr_eq(letter->deaths[letter->n_deaths - 1], last);
    }
    ck_assert_uint_eq(context.dead_letters.by_id.n_entries, 2);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
