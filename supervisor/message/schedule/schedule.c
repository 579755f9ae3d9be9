/* SPDX-License-Identifier: MIT */
#include "supervisor/message/schedule/schedule.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include "supervisor/message/router.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define schedule_of(pointer, member) list_entry(pointer, struct schedule, member)

/* How often a periodic timer checks whether its stopped recipient has been started. */
#define STOPPED_PAUSE USEC_PER_SEC

size_t schedule_count_for(const struct actor *to)
{
    return to->scheduled ? to->scheduled->by_type.n_entries : 0;
}

/* ---- shares ---- */

/* NULL = it is outside, or gone. */
static struct schedule_share *share_of(struct message_context *context, uint64_t setter)
{
    struct actor *actor = setter != 0 ? actor_get(context, setter) : NULL;

    return actor ? &actor->timers : NULL;
}

/* Returns a reference to the share of the setter's group, or NULL when out of memory. After an
 * upgrade, the group of a setter that is gone is not known. */
static struct share *share_of_group(struct message_context *context, uint64_t setter)
{
    const char *owner = actor_name_of(context, setter);

    return share_get(&context->schedules.shares, owner, share_owner_size(owner));
}

/* How often it fires in a span that is long enough to count periods of a few minutes. */
static uint64_t beats_of(usec_t period)
{
    return period == 0 ? 0 : SCHEDULE_BEATS_SPAN / period;
}

static uint64_t per_span(uint64_t per_second)
{
    return per_second * (SCHEDULE_BEATS_SPAN / USEC_PER_SEC);
}

static bool is_within(const struct schedule_share *share, uint64_t bytes, uint64_t beats)
{
    return share->n < SCHEDULES_PER_ACTOR_MAX && bytes <= SCHEDULES_PER_ACTOR_MEMORY_MAX &&
           share->bytes <= SCHEDULES_PER_ACTOR_MEMORY_MAX - bytes &&
           share->beats + beats <= per_span(SCHEDULES_PER_ACTOR_BEATS_MAX);
}

/* Whether its beats are few enough for them not to count in the bounds of others. */
static bool is_modest(const struct schedule_share *share, uint64_t beats)
{
    return share && share->beats + beats <= per_span(SCHEDULES_PER_ACTOR_BEATS_FREE);
}

/* Checks whether `setter` may set one more, whose message counts `bytes`. 0 or SCHEDULE_E_*. */
static int check_room(struct message_context *context, const struct schedule_options *options,
                      const struct share *group, uint64_t bytes)
{
    const struct schedule_share *own = share_of(context, options->sender);
    const uint64_t beats = beats_of(options->period);

    if (own && !is_within(own, bytes, beats))
        return SCHEDULE_E_SHARE;
    return share_permits(group, SCHEDULE_SHARE_N, 1, SCHEDULES_MAX) &&
                   share_permits(group, SCHEDULE_SHARE_BYTES, bytes, SCHEDULES_MEMORY_MAX) &&
                   (is_modest(own, beats) || share_permits(group, SCHEDULE_SHARE_BEATS, beats,
                                                           per_span(SCHEDULES_BEATS_MAX)))
               ? 0
               : SCHEDULE_E_TOO_MANY;
}

static void schedule_count(const struct schedule *schedule)
{
    struct schedule_share *own = share_of(schedule->context, schedule->setter);
    const uint64_t beats = beats_of(schedule->period);

    share_add(schedule->share, SCHEDULE_SHARE_N, 1);
    share_add(schedule->share, SCHEDULE_SHARE_BYTES, schedule->bytes);
    share_add(schedule->share, SCHEDULE_SHARE_BEATS, beats);
    if (!own)
        return;
    own->n++;
    own->bytes += schedule->bytes;
    own->beats += beats;
}

static void schedule_discount(const struct schedule *schedule)
{
    struct schedule_share *own = share_of(schedule->context, schedule->setter);
    const uint64_t beats = beats_of(schedule->period);

    share_sub(schedule->share, SCHEDULE_SHARE_N, 1);
    share_sub(schedule->share, SCHEDULE_SHARE_BYTES, schedule->bytes);
    share_sub(schedule->share, SCHEDULE_SHARE_BEATS, beats);
    share_unref(schedule->share);
    if (!own)
        return;
    own->n--;
    own->bytes -= schedule->bytes;
    own->beats -= beats;
}

static void schedule_end(struct schedule *schedule)
{
    struct schedule_table *table = &schedule->context->schedules;

    alarm_stop(&schedule->alarm);
    list_unlink(&schedule->link);
    index_remove(&schedule->recipient->by_type, &schedule->by_type);
    index_remove(&schedule->recipient->by_setter, &schedule->by_setter);
    index_remove(&table->by_id, &schedule->by_id);
    handle_table_remove(&table->handles, schedule->handle);
    schedule_discount(schedule);
    envelope_free(schedule->envelope);
    free(schedule);
}

/* ---- firing ---- */

static usec_t schedule_now(const struct schedule *schedule)
{
    const struct alarms *alarms = schedule->context->alarms;

    return schedule->realtime ? alarms->realtime() : loop_now(alarms->loop);
}

static void schedule_arm(struct schedule *schedule)
{
    if (schedule->realtime)
        alarm_set_at(&schedule->alarm, schedule->due);
    else
        alarm_set_after(&schedule->alarm, usec_sub(schedule->due, schedule_now(schedule)));
}

/* Sets `due` to the next beat, at least `pause` from now. */
static void schedule_step(struct schedule *schedule, usec_t pause)
{
    const usec_t late = usec_sub(schedule_now(schedule), schedule->due);
    const uint64_t rest = pause / schedule->period;

    schedule->due = usec_add(schedule->due,
                             (late / schedule->period + (rest > 1 ? rest : 1)) * schedule->period);
}

/* Arms a periodic timer for its next beat. */
static void schedule_go_on(struct schedule *schedule, usec_t pause)
{
    schedule_step(schedule, pause);
    schedule_arm(schedule);
}

static void schedule_on_alarm(struct alarm *alarm)
{
    struct schedule *schedule = schedule_of(alarm, alarm);
    struct message_context *context = schedule->context;
    struct actor *to = schedule->recipient->actor;
    struct envelope *envelope;

    if (!to) {
        schedule_end(schedule);
        return;
    }
    if (schedule->period > 0 && to->class->is_stopped && to->class->is_stopped(to)) {
        schedule_go_on(schedule, STOPPED_PAUSE);
        return;
    }
    if (schedule->period > 0) {
        envelope = envelope_copy(schedule->envelope);
        schedule_go_on(schedule, 0);
    } else {
        envelope = schedule->envelope;
        schedule->envelope = NULL;
        schedule_end(schedule);
    }
    if (!envelope) {
        actor_log(to, LOG_LEVEL_ERROR, "a timer's message is lost: out of memory or descriptors");
        return;
    }
    envelope->id = message_context_next_id(context);
    envelope->sent_at = loop_realtime(context->loop);
    if (!actor_get(context, envelope->sender))
        envelope->sender = 0;
    (void)router_send(to, envelope);
}

/* ---- setting ---- */

static struct envelope *schedule_envelope(const struct schedule_options *options)
{
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, options->topic);

    if (envelope && options->payload)
        payload_move(&envelope->payload, options->payload);
    else if (options->payload)
        payload_deinit(options->payload);
    return envelope;
}

/* Timers of one type are spread over so many keys. An index that grows moves all entries of a key
 * in one step, and there may be a million timers of one type. */
#define KEYS_PER_TYPE 64u

/* The key of a type's timers whose ids leave this remainder. */
static uint64_t type_key(const char *type, uint32_t type_size, uint64_t id)
{
    return hash_bytes(type, type_size) ^ hash_mix(id % KEYS_PER_TYPE);
}

static uint64_t setter_key(uint64_t setter, uint64_t key)
{
    return key ^ setter * UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns NULL when out of memory. */
static struct schedule_recipient *recipient_of(struct actor *to)
{
    if (!to->scheduled && (to->scheduled = calloc(1, sizeof(*to->scheduled)))) {
        to->scheduled->actor = to;
        list_init(&to->scheduled->schedules);
    }
    return to->scheduled;
}

/* Takes over `share` on success. */
static int schedule_new(struct schedule **ret, struct message_context *context,
                        const struct schedule_options *options, struct share *share)
{
    struct schedule_recipient *recipient = recipient_of(options->to);
    struct schedule *schedule = recipient ? calloc(1, sizeof(*schedule)) : NULL;
    int r = -ENOMEM;

    if (schedule)
        r = handle_table_add(&context->schedules.handles, schedule, &schedule->handle);
    if (r < 0) {
        free(schedule);
        return r;
    }
    schedule->context = context;
    schedule->recipient = recipient;
    schedule->setter = options->sender;
    schedule->share = share;
    schedule->period = options->period;
    schedule->realtime = options->realtime;
    alarm_init(&schedule->alarm, context->alarms, schedule_on_alarm);
    *ret = schedule;
    return 0;
}

static void schedule_register(struct schedule *schedule, const struct topic *topic)
{
    struct schedule_table *table = &schedule->context->schedules;
    const uint64_t key = type_key(topic->type, topic->type_size, schedule->id);
    struct schedule_recipient *recipient = schedule->recipient;

    list_push_back(&recipient->schedules, &schedule->link);
    index_add(&recipient->by_type, &schedule->by_type, key);
    index_add(&recipient->by_setter, &schedule->by_setter, setter_key(schedule->setter, key));
    index_add(&table->by_id, &schedule->by_id, schedule->id);
    schedule_count(schedule);
}

/* Takes over the message. */
static void schedule_begin(struct schedule *schedule, const struct schedule_options *options,
                           struct envelope *envelope)
{
    schedule->envelope = envelope;
    schedule->bytes = envelope_bytes(envelope);
    schedule_register(schedule, options->topic);
    envelope->sender = options->sender;
    envelope->timer = schedule->id;
    envelope->flags = PROTOCOL_MESSAGE_TIMER;
    schedule_arm(schedule);
}

/* Makes the timer that had this id, regardless of bounds. Returns 0, -EBADMSG (the id is in use),
 * or -ENOMEM. */
static int schedule_restore(struct message_context *context, const struct schedule_options *options,
                            uint64_t id)
{
    struct envelope *envelope = schedule_envelope(options);
    struct share *share = share_of_group(context, options->sender);
    struct schedule *schedule;
    int r = envelope && share ? 0 : -ENOMEM;

    if (r == 0 && index_find(&context->schedules.by_id, id))
        r = -EBADMSG;
    if (r == 0)
        r = schedule_new(&schedule, context, options, share);
    if (r < 0) {
        envelope_free(envelope);
        share_unref(share);
        return r;
    }
    if (context->schedules.last_id < id)
        context->schedules.last_id = id;
    schedule->id = id;
    schedule->due = options->at;
    schedule_begin(schedule, options, envelope);
    return 0;
}

int schedule_add(struct message_context *context, const struct schedule_options *options,
                 uint64_t *ret)
{
    struct envelope *envelope = schedule_envelope(options);
    struct share *share = share_of_group(context, options->sender);
    struct schedule *schedule;
    int r = envelope && share ? 0 : -ENOMEM;

    if (r == 0)
        r = check_room(context, options, share, envelope_bytes(envelope));
    if (r == 0)
        r = schedule_new(&schedule, context, options, share);
    if (r != 0) {
        envelope_free(envelope);
        share_unref(share);
        return r;
    }
    schedule->id = ++context->schedules.last_id;
    schedule->due = options->realtime ? options->at : usec_add(schedule_now(schedule), options->at);
    schedule_begin(schedule, options, envelope);
    *ret = schedule->id;
    return 0;
}

/* ---- cancelling ---- */

unsigned schedule_cancel(struct message_context *context, uint64_t id, const struct actor *by)
{
    struct schedule *schedule =
        index_find_entry(&context->schedules.by_id, id, struct schedule, by_id);

    if (!schedule || !schedule->recipient->actor ||
        (by && schedule->recipient->actor != by && schedule->setter != by->reference))
        return 0;
    schedule_end(schedule);
    return 1;
}

/* Like schedule_cancel_type(), but only those with this key. */
static unsigned cancel_key(struct actor *to, uint64_t key, const struct topic *type,
                           const struct actor *by, unsigned max)
{
    const bool any_setter = !by || by == to;
    struct index_entry *entry =
        any_setter ? index_find(&to->scheduled->by_type, key)
                   : index_find(&to->scheduled->by_setter, setter_key(by->reference, key));
    unsigned n = 0;

    while (entry && n < max) {
        struct schedule *schedule =
            any_setter ? schedule_of(entry, by_type) : schedule_of(entry, by_setter);
        const struct topic *topic = &schedule->envelope->topic;

        entry = index_find_next(entry);
        if (topic->type_size != type->type_size ||
            memcmp(topic->type, type->type, type->type_size) != 0 ||
            (!any_setter && schedule->setter != by->reference))
            continue;
        schedule_end(schedule);
        n++;
    }
    return n;
}

unsigned schedule_cancel_type(struct actor *to, const char *type, uint32_t type_size,
                              const struct actor *by, unsigned max)
{
    const struct topic topic = {.type = type, .type_size = type_size};
    unsigned n = 0;

    for (unsigned i = 0; to->scheduled && i < KEYS_PER_TYPE && n < max; i++)
        n += cancel_key(to, type_key(type, type_size, i), &topic, by, max - n);
    return n;
}

/* ---- the end of a recipient ---- */

static size_t end_some(struct message_context *context, struct remains *remains, size_t max)
{
    struct schedule_recipient *recipient = list_entry(remains, struct schedule_recipient, remains);
    struct list *node;
    size_t n = 0;

    for (; n < max && (node = list_first(&recipient->schedules)); n++)
        schedule_end(schedule_of(node, link));
    if (list_empty(&recipient->schedules)) {
        index_deinit(&recipient->by_type);
        index_deinit(&recipient->by_setter);
        list_unlink(&remains->link);
        free(recipient);
    }
    return n;
}

void schedule_forget(struct actor *to)
{
    struct schedule_recipient *recipient = TAKE_PTR(to->scheduled);

    if (!recipient)
        return;
    recipient->actor = NULL;
    recipient->remains.free_some = end_some;
    remains_add(to->context, &recipient->remains);
}

void schedule_table_init(struct schedule_table *table)
{
    *table = (struct schedule_table){0};
    shares_init(&table->shares);
}

void schedule_table_deinit(struct schedule_table *table)
{
    handle_table_deinit(&table->handles);
    shares_deinit(&table->shares);
    index_deinit(&table->by_id);
}

/* ---- across an upgrade ---- */

#define ROW schedule
#define SCHEDULE_FIELDS(F)                                                                         \
    F(UPGRADE, id, NUMBER(id))                                                                     \
    F(UPGRADE, setter, NUMBER(setter))                                                             \
    F(UPGRADE, due, NUMBER(due))                                                                   \
    F(UPGRADE, period, NUMBER(period))                                                             \
    F(UPGRADE, realtime, NUMBER(realtime))
const struct record SCHEDULE_RECORD = RECORD("timer", SCHEDULE_FIELDS);

void schedules_save(const struct actor *to, struct saver *saver)
{
    if (!to->scheduled)
        return;
    list_for_each_entry (schedule, &to->scheduled->schedules, struct schedule, link) {
        struct saved_writer row = {0};

        saved_put_number(&row, to->reference);
        record_put(&row, &SCHEDULE_RECORD, schedule);
        topic_put(&row, &schedule->envelope->topic);
        saved_add(saver, SCHEDULE_RECORD.name, &row, &schedule->envelope->payload);
    }
}

int schedule_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct payload payload = PAYLOAD_NULL;
    struct schedule_options options = {.to = actor_get(context, saved_get_number(row))};
    struct schedule saved = {0};
    struct topic topic;
    int r;

    record_get(row, &SCHEDULE_RECORD, &saved);
    options.sender = saved.setter;
    options.at = saved.due;
    options.period = saved.period;
    options.realtime = saved.realtime;
    r = topic_get(row, &topic);
    if (r < 0 || saved.id == 0 || (options.period > 0 && options.period < SCHEDULE_PERIOD_MIN))
        return -EBADMSG;
    if (!options.to)
        return 0;
    r = payload_set(&payload, row->payload, row->payload_size);
    if (r < 0)
        return r;
    options.topic = &topic;
    options.payload = &payload;
    return schedule_restore(context, &options, saved.id);
}
