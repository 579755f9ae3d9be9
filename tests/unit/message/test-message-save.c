/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-save.h"
#include "supervisor/message/monitor.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/message/message-fixture.h"
#include "tests/unit/succession/odd.h"
#include "tests/unit/suite.h"

/* An actor with rings in a supervisor, and the same in the one that takes its place. */
static struct side {
    struct fake_peer peer;
    struct actor *actor;
} giver, taker;

static const struct endpoint_handler HANDLER;

static void start(struct side *side, struct message_context *context)
{
    const struct endpoint_options sizes = {.ring_size = 1 << 16, .inline_max = 256};

    fake_peer_open(&side->peer, context->loop, &sizes, &HANDLER);
    side->actor = make_actor(context, &INBOX, "actor");
    delivery_attach(side->actor, &side->peer.endpoint);
}

static void stop(struct side *side)
{
    actor_end(side->actor, "the test is over");
    fake_peer_close(&side->peer);
}

static void setup(void)
{
    set_up_upgrade();
    start(&giver, &before);
    start(&taker, &after);
}

static void teardown(void)
{
    stop(&giver);
    stop(&taker);
    tear_down_upgrade();
}

static struct topic topic_with_key(const char *type)
{
    return (struct topic){
        .type = type, .type_size = (uint32_t)strlen(type), .key = "k", .key_size = 1};
}

static struct envelope *make_message(const char *type, uint64_t id)
{
    const struct topic topic = topic_with_key(type);
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, &topic);

    ck_assert_ptr_nonnull(envelope);
    envelope->id = id;
    envelope->sender = 11;
    envelope->ask = 12;
    envelope->attempt = 2;
    envelope->flags = PROTOCOL_MESSAGE_REDELIVERED;
    envelope->sent_at = 13;
    ck_assert_int_eq(payload_set(&envelope->payload, type, strlen(type)), 0);
    return envelope;
}

/* The same messages, in the same order. */
static void check_messages(const struct list *given, const struct list *taken)
{
    const struct list *at = taken->next;

    list_for_each_entry (expected, given, struct envelope, link) {
        const struct envelope *found = list_entry(at, struct envelope, link);

        ck_assert_ptr_ne(at, taken);
        odd_compare(&ENVELOPE_RECORD, MEDIUM_UPGRADE, expected, found);
        ck_assert_int_eq(topic_compare(&found->topic, &expected->topic), 0);
        ck_assert_uint_eq(found->payload.size, expected->payload.size);
        ck_assert_mem_eq(payload_data(&found->payload), payload_data(&expected->payload),
                         expected->payload.size);
        at = at->next;
    }
    ck_assert_ptr_eq(at, taken);
}

TEST(messages_keep_their_order_and_all_that_is_known_of_them)
{
    struct mailbox *mailbox = &giver.actor->mailbox;
    struct envelope *stashed = make_message("stashed", 1);

    mailbox_add_stash(mailbox, stashed);
    mailbox_set_in_hand(mailbox, stashed, true);
    mailbox_add_stash(mailbox, make_message("stashed.too", 2));
    mailbox_add(mailbox, make_message("first", 3));
    mailbox_add(mailbox, make_message("second", 4));
    actors_save_each(&before, &saver.saver, delivery_save);
    ck_assert_int_eq(restore(INBOX_RECORD.name, inbox_restore), 0);
    ck_assert_int_eq(restore(MAIL_ROW, mail_restore), 0);
    check_messages(&mailbox->stash, &taker.actor->mailbox.stash);
    check_messages(&mailbox->messages, &taker.actor->mailbox.messages);
    ck_assert_uint_eq(taker.actor->mailbox.n_in_hand, 1);
    ck_assert_uint_eq(taker.actor->mailbox.n, 4);
    ck_assert_uint_eq(taker.actor->mailbox.bytes, mailbox->bytes);
}

TEST(a_pause_and_the_log_of_an_actor_stay)
{
    delivery_pause(giver.actor);
    giver.actor->log = ACTOR_LOG_UNHANDLED;
    actors_save_each(&before, &saver.saver, delivery_save);
    ck_assert_int_eq(restore(INBOX_RECORD.name, inbox_restore), 0);
    ck_assert(taker.actor->paused);
    ck_assert_uint_eq(taker.actor->inbox.control, MEMORY_CONTROL_PAUSE);
    ck_assert_uint_eq(taker.actor->log, ACTOR_LOG_UNHANDLED);
}

TEST(messages_for_an_actor_that_is_gone_are_dead_letters)
{
    mailbox_add(&giver.actor->mailbox, make_message("first", 3));
    mailbox_add_stash(&giver.actor->mailbox, make_message("second", 4));
    actors_save_each(&before, &saver.saver, delivery_save);
    index_remove(&after.references, &taker.actor->by_reference);
    ck_assert_int_eq(restore(MAIL_ROW, mail_restore), 0);
    index_add(&after.references, &taker.actor->by_reference, taker.actor->reference);
    ck_assert_uint_eq(after.dead_letters.tally->last_id, 2);
}

static struct ask *ask(uint64_t cookie, usec_t timeout)
{
    const struct ask_options options = {.asker = giver.actor,
                                        .cookie = cookie,
                                        .timeout = timeout,
                                        .wanted = topic_with_key("answer")};
    struct ask *ret;

    ck_assert_int_eq(ask_new(&ret, &before, &options), 0);
    return ret;
}

TEST(asks_keep_handle_asker_copies_and_time)
{
    struct ask *first = ask(1, USEC_INFINITY), *ended = ask(2, 5), *copied = ask(3, 1000000),
               *found;
    const uint64_t gone = ended->handle;

    ask_end(ended);
    ck_assert(ask_share(copied, 3));
    actors_save_each(&before, &saver.saver, asks_save);
    ck_assert_int_eq(restore(ASK_RECORD.name, ask_restore_row), 0);
    found = ask_get(&after.asks, first->handle);
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_eq(found->asker, taker.actor);
    ck_assert_uint_eq(found->cookie, 1);
    ck_assert(!timer_armed(&found->timer));
    ck_assert(ask_wants(found, &(struct topic){.type = "answer.well", .type_size = 11}));
    ck_assert(!ask_wants(found, &(struct topic){.type = "other", .type_size = 5}));
    found = ask_get(&after.asks, copied->handle);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(timer_at(&found->timer), timer_at(&copied->timer));
    ck_assert_uint_eq(found->copies, 3);
    ck_assert_uint_eq(taker.actor->n_asks, 4);
    ck_assert_ptr_null(ask_get(&after.asks, gone));
    ck_assert_uint_eq(ask_asked_by(&before.asks, gone), giver.actor->reference);
    ask_end_cookie(taker.actor, 3);
    ck_assert_uint_eq(taker.actor->n_asks, 1);
}

static uint64_t set_timer(usec_t at, usec_t period, bool realtime)
{
    const struct topic topic = topic_with_key("tick");
    struct payload payload = PAYLOAD_NULL;
    const struct schedule_options options = {
        .to = giver.actor,
        .sender = giver.actor->reference,
        .at = at,
        .period = period,
        .realtime = realtime,
        .topic = &topic,
        .payload = &payload,
    };
    uint64_t id;

    ck_assert_int_eq(payload_set(&payload, "beat", 4), 0);
    ck_assert_int_eq(schedule_add(&before, &options, &id), 0);
    return id;
}

static const struct schedule *find_timer(const struct message_context *context, uint64_t id)
{
    struct index_entry *entry = index_find(&context->schedules.by_id, id);

    ck_assert_ptr_nonnull(entry);
    return list_entry(entry, struct schedule, by_id);
}

TEST(timers_keep_id_time_and_beat)
{
    const uint64_t ids[] = {set_timer(1000000, 0, false), set_timer(5000, 7000, false),
                            set_timer(clock_realtime() + 1000000, 0, true)};

    actors_save_each(&before, &saver.saver, schedules_save);
    ck_assert_int_eq(restore(SCHEDULE_RECORD.name, schedule_restore_row), 0);
    for (size_t i = 0; i < ELEMENTS(ids); i++) {
        const struct schedule *a = find_timer(&before, ids[i]);
        const struct schedule *b = find_timer(&after, ids[i]);

        ck_assert_uint_eq(b->due, a->due);
        ck_assert_uint_eq(b->period, a->period);
        ck_assert_uint_eq(b->realtime, a->realtime);
        ck_assert_uint_eq(b->setter, a->setter);
        ck_assert_ptr_eq(b->recipient->actor, taker.actor);
        ck_assert_uint_eq(b->envelope->timer, ids[i]);
        ck_assert_mem_eq(payload_data(&b->envelope->payload), "beat", 4);
    }
    ck_assert_uint_eq(after.schedules.last_id, 3);
    ck_assert_uint_eq(taker.actor->timers.n, 3);
    ck_assert_uint_eq(taker.actor->timers.bytes, giver.actor->timers.bytes);
    ck_assert_uint_eq(schedule_cancel_type(taker.actor, "tick", 4, taker.actor, 10), 3);
}

/* How often an actor is told that the other one has ended. */
static unsigned count_notices(const struct actor *observer, const struct actor *other)
{
    unsigned n = 0;

    list_for_each_entry (envelope, &observer->mailbox.answers, struct envelope, link) {
        struct protocol_terminated notice;

        n += envelope->kind == PROTOCOL_TERMINATED &&
             protocol_get_terminated(envelope->head, envelope->head_size, &notice) == 0 &&
             notice.reference == other->reference;
    }
    return n;
}

TEST(a_monitor_tells_once_of_what_ends_or_fails_in_between)
{
    struct actor *other = make_actor(&before, &INBOX, "other"), *again;

    ck_assert_int_eq(monitor_add(giver.actor, other->reference), 0);
    actors_save_each(&before, &saver.saver, monitors_save);
    ck_assert_int_eq(restore(MONITOR_RECORD.name, monitor_restore_row), 0);
    ck_assert_uint_eq(count_notices(taker.actor, other), 1);
    again = make_actor(&after, &INBOX, "other");
    again->failed = true;
    ck_assert_int_eq(restore(MONITOR_RECORD.name, monitor_restore_row), 0);
    actor_end(again, "gone");
    ck_assert_uint_eq(count_notices(taker.actor, other), 2);
}

TEST(a_monitor_ends_with_its_worker)
{
    struct actor *other = make_actor(&before, &INBOX, "other");
    struct endpoint *endpoint = taker.actor->inbox.endpoint;

    ck_assert_int_eq(monitor_add(giver.actor, other->reference), 0);
    actors_save_each(&before, &saver.saver, monitors_save);
    other = make_actor(&after, &INBOX, "other");
    taker.actor->inbox.endpoint = NULL;
    ck_assert_int_eq(restore(MONITOR_RECORD.name, monitor_restore_row), 0);
    taker.actor->inbox.endpoint = endpoint;
    ck_assert_uint_eq(taker.actor->n_monitoring, 0);
    actor_end(other, "gone");
}

TEST(damaged_rows_are_refused_or_harmless)
{
    static const struct {
        const char *kind;
        restore_fn restore;
    } KINDS[] = {
        {"inbox", inbox_restore},        {MAIL_ROW, mail_restore},         {"ask", ask_restore_row},
        {"timer", schedule_restore_row}, {"monitor", monitor_restore_row},
    };

    mailbox_add(&giver.actor->mailbox, make_message("first", 3));
    mailbox_add_stash(&giver.actor->mailbox, make_message("second", 4));
    (void)ask(1, USEC_INFINITY);
    (void)set_timer(1000000, 2000000, false);
    actors_save_each(&before, &saver.saver, delivery_save);
    actors_save_each(&before, &saver.saver, asks_save);
    actors_save_each(&before, &saver.saver, schedules_save);
    ck_assert_int_eq(monitor_add(giver.actor, make_actor(&before, &INBOX, "other")->reference), 0);
    actors_save_each(&before, &saver.saver, monitors_save);
    for (size_t i = 0; i < saver.n_rows; i++)
        for (size_t j = 0; j < ELEMENTS(KINDS); j++)
            if (strcmp(saver.rows[i].kind, KINDS[j].kind) == 0)
                restore_damaged(i, KINDS[j].restore);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
