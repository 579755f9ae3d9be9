/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include "supervisor/message/monitor.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/fixture.h"
#include "tests/unit/succession/memory-saver.h"
#include "tests/unit/suite.h"

/* An actor with rings in a supervisor, and the same in the one that takes its place. */
struct side {
    struct message_context context;
    struct alarms alarms;
    struct event_bus events;
    struct death_log deaths;
    struct fake_peer peer;
    struct actor *actor;
};

static struct side before, after;
static struct memory_saver saver;

static const struct endpoint_handler HANDLER;

static const struct actor_class CLASS = {
    .kind = ACTOR_CLIENT,
    .deliver = delivery_to_inbox,
    .feed = delivery_feed_inbox,
};

static void start(struct side *side)
{
    const struct endpoint_options sizes = {.ring_size = 1 << 16, .inline_max = 256};

    message_context_init(&side->context);
    side->context.loop = new_loop();
    alarms_init(&side->alarms, side->context.loop);
    side->context.alarms = &side->alarms;
    ck_assert_int_eq(event_bus_init(&side->events), 0);
    side->context.events = &side->events;
    death_log_init(&side->deaths, 1);
    side->context.deaths = &side->deaths;
    dead_letters_resize(&side->context.dead_letters, 10, 1 << 20);
    fake_peer_open(&side->peer, side->context.loop, &sizes, &HANDLER);
    ck_assert_int_eq(actor_new(&side->actor, &side->context,
                               &(struct actor_options){.class = &CLASS, .name = "actor"}),
                     0);
    delivery_attach(side->actor, &side->peer.endpoint);
}

static void stop(struct side *side)
{
    actor_end(side->actor, "the test is over");
    fake_peer_close(&side->peer);
    message_context_deinit(&side->context);
    event_bus_deinit(&side->events);
    death_log_deinit(&side->deaths);
    alarms_deinit(&side->alarms);
    loop_free(side->context.loop);
}

static void setup(void)
{
    start(&before);
    start(&after);
    memory_saver_init(&saver);
}

static void teardown(void)
{
    stop(&before);
    stop(&after);
    memory_saver_deinit(&saver);
}

typedef int (*restore_fn)(struct message_context *context, struct saved_reader *row);

/* Restores all rows of that kind. */
static void restore(const char *kind, restore_fn fn)
{
    for (size_t i = 0; i < saver.n_rows; i++) {
        if (strcmp(saver.rows[i].kind, kind) != 0)
            continue;
        struct saved_reader row = memory_saver_read(&saver, i, kind);
        ck_assert_int_eq(fn(&after.context, &row), 0);
    }
}

static struct topic topic_of(const char *type)
{
    return (struct topic){
        .type = type, .type_size = (uint32_t)strlen(type), .key = "k", .key_size = 1};
}

static struct envelope *make_message(const char *type, uint64_t id)
{
    const struct topic topic = topic_of(type);
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

static void check_message(const struct list *node, const char *type, uint64_t id)
{
    const struct envelope *envelope = list_entry(node, struct envelope, link);

    ck_assert_uint_eq(envelope->id, id);
    ck_assert_uint_eq(envelope->sender, 11);
    ck_assert_uint_eq(envelope->ask, 12);
    ck_assert_uint_eq(envelope->attempt, 2);
    ck_assert_uint_eq(envelope->flags, PROTOCOL_MESSAGE_REDELIVERED);
    ck_assert_uint_eq(envelope->sent_at, 13);
    ck_assert_uint_eq(envelope->topic.type_size, strlen(type));
    ck_assert_mem_eq(envelope->topic.type, type, strlen(type));
    ck_assert_uint_eq(envelope->topic.key_size, 1);
    ck_assert_mem_eq(envelope->topic.key, "k", 1);
    ck_assert_uint_eq(envelope->payload.size, strlen(type));
    ck_assert_mem_eq(payload_data(&envelope->payload), type, strlen(type));
}

TEST(messages_keep_their_order_and_all_that_is_known_of_them)
{
    struct mailbox *mailbox = &before.actor->mailbox;
    struct envelope *stashed = make_message("stashed", 1);

    mailbox_add_stash(mailbox, stashed);
    mailbox_set_in_hand(mailbox, stashed, true);
    mailbox_add_stash(mailbox, make_message("stashed.too", 2));
    mailbox_add(mailbox, make_message("first", 3));
    mailbox_add(mailbox, make_message("second", 4));
    actors_save_each(&before.context, &saver.saver, delivery_save);
    restore(INBOX_RECORD.name, inbox_restore);
    restore(MAIL_ROW, mail_restore);
    mailbox = &after.actor->mailbox;
    check_message(mailbox->stash.next, "stashed", 1);
    check_message(mailbox->stash.next->next, "stashed.too", 2);
    ck_assert_uint_eq(mailbox->n_in_hand, 1);
    check_message(mailbox->messages.next, "first", 3);
    check_message(mailbox->messages.next->next, "second", 4);
    ck_assert_uint_eq(mailbox->n, 4);
    ck_assert_uint_eq(mailbox->bytes, before.actor->mailbox.bytes);
}

TEST(a_pause_and_the_log_of_an_actor_stay)
{
    delivery_pause(before.actor);
    before.actor->log = ACTOR_LOG_UNHANDLED;
    actors_save_each(&before.context, &saver.saver, delivery_save);
    restore(INBOX_RECORD.name, inbox_restore);
    ck_assert(after.actor->paused);
    ck_assert_uint_eq(after.actor->inbox.control, MEMORY_CONTROL_PAUSE);
    ck_assert_uint_eq(after.actor->log, ACTOR_LOG_UNHANDLED);
}

TEST(messages_for_an_actor_that_is_gone_are_dead_letters)
{
    mailbox_add(&before.actor->mailbox, make_message("first", 3));
    mailbox_add_stash(&before.actor->mailbox, make_message("second", 4));
    actors_save_each(&before.context, &saver.saver, delivery_save);
    index_remove(&after.context.references, &after.actor->by_reference);
    restore(MAIL_ROW, mail_restore);
    index_add(&after.context.references, &after.actor->by_reference, after.actor->reference);
    ck_assert_uint_eq(after.context.dead_letters.tally->last_id, 2);
}

static struct ask *ask(uint64_t cookie, usec_t timeout)
{
    const struct ask_options options = {
        .asker = before.actor, .cookie = cookie, .timeout = timeout, .wanted = topic_of("answer")};
    struct ask *ret;

    ck_assert_int_eq(ask_new(&ret, &before.context, &options), 0);
    return ret;
}

TEST(asks_keep_handle_asker_copies_and_time)
{
    struct ask *first = ask(1, USEC_INFINITY), *ended = ask(2, 5), *copied = ask(3, 1000000),
               *found;
    const uint64_t gone = ended->handle;

    ask_end(ended);
    ck_assert(ask_share(copied, 3));
    actors_save_each(&before.context, &saver.saver, asks_save);
    restore(ASK_RECORD.name, ask_restore_row);
    found = ask_get(&after.context.asks, first->handle);
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_eq(found->asker, after.actor);
    ck_assert_uint_eq(found->cookie, 1);
    ck_assert(!timer_armed(&found->timer));
    ck_assert(ask_wants(found, &(struct topic){.type = "answer.well", .type_size = 11}));
    ck_assert(!ask_wants(found, &(struct topic){.type = "other", .type_size = 5}));
    found = ask_get(&after.context.asks, copied->handle);
    ck_assert_ptr_nonnull(found);
    ck_assert_uint_eq(timer_at(&found->timer), timer_at(&copied->timer));
    ck_assert_uint_eq(found->copies, 3);
    ck_assert_uint_eq(after.actor->n_asks, 4);
    ck_assert_ptr_null(ask_get(&after.context.asks, gone));
    ck_assert_uint_eq(ask_asked_by(&before.context.asks, gone), before.actor->reference);
    ask_end_cookie(after.actor, 3);
    ck_assert_uint_eq(after.actor->n_asks, 1);
}

static uint64_t set_timer(usec_t at, usec_t period, bool realtime)
{
    const struct topic topic = topic_of("tick");
    struct payload payload = PAYLOAD_NULL;
    const struct schedule_options options = {
        .to = before.actor,
        .sender = before.actor->reference,
        .at = at,
        .period = period,
        .realtime = realtime,
        .topic = &topic,
        .payload = &payload,
    };
    uint64_t id;

    ck_assert_int_eq(payload_set(&payload, "beat", 4), 0);
    ck_assert_int_eq(schedule_add(&before.context, &options, &id), 0);
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

    actors_save_each(&before.context, &saver.saver, schedules_save);
    restore(SCHEDULE_RECORD.name, schedule_restore_row);
    for (size_t i = 0; i < ELEMENTS(ids); i++) {
        const struct schedule *a = find_timer(&before.context, ids[i]);
        const struct schedule *b = find_timer(&after.context, ids[i]);

        ck_assert_uint_eq(b->due, a->due);
        ck_assert_uint_eq(b->period, a->period);
        ck_assert_uint_eq(b->realtime, a->realtime);
        ck_assert_uint_eq(b->setter, a->setter);
        ck_assert_ptr_eq(b->recipient->actor, after.actor);
        ck_assert_uint_eq(b->envelope->timer, ids[i]);
        ck_assert_mem_eq(payload_data(&b->envelope->payload), "beat", 4);
    }
    ck_assert_uint_eq(after.context.schedules.last_id, 3);
    ck_assert_uint_eq(after.actor->timers.n, 3);
    ck_assert_uint_eq(after.actor->timers.bytes, before.actor->timers.bytes);
    ck_assert_uint_eq(schedule_cancel_type(after.actor, "tick", 4, after.actor, 10), 3);
}

static struct actor *make_other(struct side *side)
{
    struct actor *other;

    ck_assert_int_eq(actor_new(&other, &side->context,
                               &(struct actor_options){.class = &CLASS, .name = "other"}),
                     0);
    return other;
}

/* How often an actor is told that the other one has ended. */
static unsigned count_notices(const struct actor *observer, const struct actor *other)
{
    unsigned n = 0;

    list_for_each (node, &observer->mailbox.answers) {
        const struct envelope *envelope = list_entry(node, struct envelope, link);

        n += envelope->kind == PROTOCOL_TERMINATED && envelope->sender == other->reference;
    }
    return n;
}

TEST(a_monitor_tells_of_an_end_after_the_upgrade)
{
    struct actor *other = make_other(&before);
    const struct actor former = *other;

    ck_assert_int_eq(monitor_add(before.actor, other->reference), 0);
    actors_save_each(&before.context, &saver.saver, monitors_save);
    other = make_other(&after);
    restore(MONITOR_RECORD.name, monitor_restore_row);
    ck_assert_uint_eq(after.actor->n_monitoring, 1);
    ck_assert_uint_eq(count_notices(after.actor, &former), 0);
    actor_end(other, "gone");
    ck_assert_uint_eq(count_notices(after.actor, &former), 1);
    ck_assert_uint_eq(after.actor->n_monitoring, 0);
}

TEST(a_monitor_tells_once_of_what_ends_or_fails_in_between)
{
    struct actor *other = make_other(&before), *again;

    ck_assert_int_eq(monitor_add(before.actor, other->reference), 0);
    actors_save_each(&before.context, &saver.saver, monitors_save);
    restore(MONITOR_RECORD.name, monitor_restore_row);
    ck_assert_uint_eq(count_notices(after.actor, other), 1);
    again = make_other(&after);
    again->failed = true;
    restore(MONITOR_RECORD.name, monitor_restore_row);
    actor_end(again, "gone");
    ck_assert_uint_eq(count_notices(after.actor, other), 2);
}

TEST(a_monitor_ends_with_its_worker)
{
    struct actor *other = make_other(&before);
    struct endpoint *endpoint = after.actor->inbox.endpoint;

    ck_assert_int_eq(monitor_add(before.actor, other->reference), 0);
    actors_save_each(&before.context, &saver.saver, monitors_save);
    other = make_other(&after);
    after.actor->inbox.endpoint = NULL;
    restore(MONITOR_RECORD.name, monitor_restore_row);
    after.actor->inbox.endpoint = endpoint;
    ck_assert_uint_eq(after.actor->n_monitoring, 0);
    actor_end(other, "gone");
}

static void check(void *userdata, struct saved_reader *row)
{
    const restore_fn fn = *(restore_fn *)userdata;
    int r = fn(&after.context, row);

    ck_assert(r == 0 || r == -EBADMSG || r == -ENOENT);
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

    mailbox_add(&before.actor->mailbox, make_message("first", 3));
    mailbox_add_stash(&before.actor->mailbox, make_message("second", 4));
    (void)ask(1, USEC_INFINITY);
    (void)set_timer(1000000, 2000000, false);
    actors_save_each(&before.context, &saver.saver, delivery_save);
    actors_save_each(&before.context, &saver.saver, asks_save);
    actors_save_each(&before.context, &saver.saver, schedules_save);
    ck_assert_int_eq(monitor_add(before.actor, make_other(&before)->reference), 0);
    actors_save_each(&before.context, &saver.saver, monitors_save);
    for (size_t i = 0; i < saver.n_rows; i++)
        for (size_t j = 0; j < ELEMENTS(KINDS); j++) {
            restore_fn fn = KINDS[j].restore;

            if (strcmp(saver.rows[i].kind, KINDS[j].kind) == 0)
                memory_saver_damage(&saver, i, check, &fn);
        }
}

const struct suite suite = {.setup = setup, .teardown = teardown};
