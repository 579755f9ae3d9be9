/* SPDX-License-Identifier: MIT */
#include "supervisor/message/schedule/schedule.h"

#include "shared/base/hash.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/router.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define schedule_of(pointer, member) list_entry(pointer, struct schedule, member)

/* How often a periodic timer looks whether its recipient, which is stopped, is there again. */
#define STOPPED_PAUSE USEC_PER_SEC

void schedule_table_init(struct schedule_table *table)
{
    *table = (struct schedule_table){0};
    list_init(&table->free);
}

void schedule_table_deinit(struct schedule_table *table)
{
    assert(table->n_armed == 0);
    for (uint32_t i = 0; i < table->n_entries; i++)
        free(table->entries[i]);
    free(table->entries);
    index_deinit(&table->by_id);
    schedule_table_init(table);
}

/* ---- who has how many ---- */

/* NULL: who set it is gone. */
static struct schedule_share *share_of(struct message_context *context, uint64_t setter)
{
    struct actor *actor = actor_get(&context->actors, setter);

    if (setter == 0)
        return &context->schedules.outside;
    return actor ? &actor->timers : NULL;
}

static bool within(const struct schedule_share *share, uint64_t bytes, uint32_t max,
                   uint64_t memory_max)
{
    return share->n < max && share->bytes <= memory_max && bytes <= memory_max - share->bytes;
}

/* Whether one more may be set that is to tell so many bytes. */
static int check_room(struct message_context *context, uint64_t setter, uint64_t bytes)
{
    const struct schedule_table *table = &context->schedules;
    const struct schedule_share all = {.n = (uint32_t)table->n_armed, .bytes = table->bytes};
    const struct schedule_share *share = share_of(context, setter);

    if (!within(&all, bytes, SCHEDULES_MAX, SCHEDULES_MEMORY_MAX))
        return SCHEDULE_E_TOO_MANY;
    if (setter == 0)
        return within(share, bytes, SCHEDULES_MAX / 2, SCHEDULES_MEMORY_MAX / 2) ? 0
                                                                                 : SCHEDULE_E_SHARE;
    if (share && !within(share, bytes, SCHEDULES_PER_ACTOR_MAX, SCHEDULES_PER_ACTOR_MEMORY_MAX))
        return SCHEDULE_E_SHARE;
    return 0;
}

static void schedule_count(const struct schedule *schedule, bool more)
{
    struct schedule_table *table = &schedule->context->schedules;
    struct schedule_share *share = share_of(schedule->context, schedule->setter);
    const uint64_t bytes = more ? schedule->bytes : -schedule->bytes;

    table->n_armed += more ? 1 : UINT64_MAX;
    table->bytes += bytes;
    if (!share)
        return;
    share->n += more ? 1 : UINT32_MAX;
    share->bytes += bytes;
}

/* Of its owner: of all orphans together once that is gone; NULL if it has not been noticed yet. */
static struct beats *beats_of(const struct schedule *schedule)
{
    struct schedule_share *share = share_of(schedule->context, schedule->setter);

    if (schedule->orphan)
        return &schedule->context->schedules.orphans;
    return share ? &share->beats : NULL;
}

static void schedule_count_beats(const struct schedule *schedule, bool more)
{
    struct beats_total *total = &schedule->context->schedules.beats;
    struct beats *beats = beats_of(schedule);

    if (schedule->period == 0 || !beats)
        return;
    if (more)
        beats_add(total, beats, schedule->period);
    else
        beats_remove(total, beats, schedule->period);
}

static void schedule_end(struct schedule *schedule)
{
    struct schedule_table *table = &schedule->context->schedules;

    alarm_stop(&schedule->alarm);
    list_unlink(&schedule->link);
    index_remove(&schedule->to->schedules_by_type, &schedule->by_type);
    index_remove(&schedule->to->schedules_by_setter, &schedule->by_setter);
    index_remove(&table->by_id, &schedule->by_id);
    schedule->envelope = envelope_free(schedule->envelope);
    schedule->id = 0;
    schedule->to = NULL;
    schedule_count(schedule, false);
    schedule_count_beats(schedule, false);
    list_push_front(&table->free, &schedule->link);
}

/* ---- going off ---- */

static usec_t schedule_now(const struct schedule *schedule)
{
    const struct alarms *alarms = schedule->context->alarms;

    return schedule->realtime ? alarms->realtime() : loop_now(alarms->loop);
}

static int schedule_arm(struct schedule *schedule)
{
    if (schedule->realtime)
        return alarm_set_at(&schedule->alarm, schedule->due);
    return alarm_set_after(&schedule->alarm, usec_sub(schedule->due, schedule_now(schedule)));
}

/* One in how many beats goes off. */
static uint64_t schedule_stride(struct schedule *schedule)
{
    if (!schedule->orphan && !beats_of(schedule)) {
        schedule->orphan = true;
        schedule_count_beats(schedule, true);
    }
    return beats_stride(&schedule->context->schedules.beats, beats_of(schedule));
}

/* To the next beat that is still to come and goes off, after a pause at least. */
static void schedule_step(struct schedule *schedule, usec_t pause)
{
    const usec_t late = usec_sub(schedule_now(schedule), schedule->due);
    const uint64_t stride = schedule_stride(schedule), rest = pause / schedule->period;

    schedule->due =
        usec_add(schedule->due,
                 (late / schedule->period + (stride > rest ? stride : rest)) * schedule->period);
}

/* A periodic one's next beat. */
static void schedule_go_on(struct schedule *schedule, usec_t pause)
{
    schedule_step(schedule, pause);
    if (schedule_arm(schedule) < 0) {
        actor_log(schedule->to, LOG_LEVEL_ERROR, "a periodic timer ends: out of memory");
        schedule_end(schedule);
    }
}

static void schedule_on_alarm(struct alarm *alarm)
{
    struct schedule *schedule = schedule_of(alarm, alarm);
    struct message_context *context = schedule->context;
    struct actor *to = schedule->to;
    struct envelope *envelope;

    if (schedule->period > 0 && actor_is_stopped(to)) {
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
    if (!actor_get(&context->actors, envelope->sender))
        envelope->sender = 0;
    (void)router_send(to, envelope);
}

/* ---- setting ---- */

static int schedule_table_grow(struct schedule_table *table, struct message_context *context)
{
    struct schedule **entries;
    struct schedule *schedule;

    if (table->n_entries == table->n_allocated) {
        const uint32_t n = table->n_allocated ? 2 * table->n_allocated : 64;
        entries = realloc(table->entries, n * sizeof(struct schedule *));
        if (!entries)
            return -ENOMEM;
        table->entries = entries;
        table->n_allocated = n;
    }
    schedule = calloc(1, sizeof(*schedule));
    if (!schedule)
        return -ENOMEM;
    schedule->context = context;
    table->entries[table->n_entries++] = schedule;
    list_push_back(&table->free, &schedule->link);
    return 0;
}

static struct envelope *schedule_envelope(const struct schedule_options *options)
{
    struct envelope *envelope = envelope_new(PROTOCOL_MESSAGE, options->topic);

    if (envelope)
        envelope->sender = options->sender;
    if (envelope && options->payload)
        payload_move(&envelope->payload, options->payload);
    else if (options->payload)
        payload_deinit(options->payload);
    return envelope;
}

static uint64_t setter_key(uint64_t setter, uint64_t type_key)
{
    return type_key ^ setter * UINT64_C(0x9e3779b97f4a7c15);
}

int schedule_add(struct message_context *context, const struct schedule_options *options,
                 uint64_t *ret)
{
    struct schedule_table *table = &context->schedules;
    struct envelope *envelope = schedule_envelope(options);
    struct schedule *schedule;
    int r = envelope ? 0 : -ENOMEM;

    if (r == 0)
        r = check_room(context, options->sender, envelope_bytes(envelope));
    if (r == 0 && list_empty(&table->free))
        r = schedule_table_grow(table, context);
    if (r != 0) {
        envelope_free(envelope);
        return r;
    }
    schedule = schedule_of(list_first(&table->free), link);
    list_unlink(&schedule->link);
    list_push_back(&options->to->schedules, &schedule->link);
    index_add(&options->to->schedules_by_type, &schedule->by_type,
              hash_bytes(options->topic->type, options->topic->type_size));
    index_add(
        &options->to->schedules_by_setter, &schedule->by_setter,
        setter_key(options->sender, hash_bytes(options->topic->type, options->topic->type_size)));
    schedule->id = ++table->last_id;
    index_add(&table->by_id, &schedule->by_id, schedule->id);
    schedule->to = options->to;
    schedule->envelope = envelope;
    schedule->bytes = envelope_bytes(envelope);
    schedule->setter = options->sender;
    schedule->period = options->period;
    schedule->realtime = options->realtime;
    schedule->orphan = false;
    schedule_count(schedule, true);
    schedule_count_beats(schedule, true);
    envelope->timer = schedule->id;
    envelope->flags = PROTOCOL_MESSAGE_TIMER;
    alarm_init(&schedule->alarm, context->alarms, schedule_on_alarm);
    schedule->due = options->realtime ? options->at : usec_add(schedule_now(schedule), options->at);
    r = schedule_arm(schedule);
    if (r < 0) {
        schedule_end(schedule);
        return r;
    }
    *ret = schedule->id;
    return 0;
}

static struct schedule *schedule_get(const struct schedule_table *table, uint64_t id)
{
    struct index_entry *entry = index_find(&table->by_id, id);

    return entry ? schedule_of(entry, by_id) : NULL;
}

static bool schedule_may_cancel(const struct schedule *schedule, const struct actor *by)
{
    return !by || schedule->to == by || schedule->setter == by->reference;
}

unsigned schedule_cancel(struct message_context *context, uint64_t id, const struct actor *by)
{
    struct schedule *schedule = schedule_get(&context->schedules, id);

    if (!schedule || !schedule_may_cancel(schedule, by))
        return 0;
    schedule_end(schedule);
    return 1;
}

static bool schedule_has_type(const struct schedule *schedule, const char *type, uint32_t size)
{
    const struct topic *topic = &schedule->envelope->topic;

    return topic->type_size == size && (size == 0 || memcmp(topic->type, type, size) == 0);
}

unsigned schedule_cancel_some(struct actor *to, const char *type, uint32_t type_size, unsigned max)
{
    const uint64_t key = hash_bytes(type, type_size);
    struct index_entry *entry, *next;
    unsigned n = 0;

    for (entry = index_find(&to->schedules_by_type, key); entry && n < max; entry = next) {
        struct schedule *schedule = schedule_of(entry, by_type);

        next = index_find_next(entry);
        if (!schedule_has_type(schedule, type, type_size))
            continue;
        schedule_end(schedule);
        n++;
    }
    return n;
}

static unsigned cancel_own(struct actor *to, const char *type, uint32_t type_size, uint64_t setter)
{
    const uint64_t key = setter_key(setter, hash_bytes(type, type_size));
    struct index_entry *entry, *next;
    unsigned n = 0;

    for (entry = index_find(&to->schedules_by_setter, key); entry; entry = next) {
        struct schedule *schedule = schedule_of(entry, by_setter);

        next = index_find_next(entry);
        if (schedule->setter != setter || !schedule_has_type(schedule, type, type_size))
            continue;
        schedule_end(schedule);
        n++;
    }
    return n;
}

unsigned schedule_cancel_type(struct actor *to, const char *type, uint32_t type_size,
                              const struct actor *by)
{
    return !by || by == to ? schedule_cancel_some(to, type, type_size, UINT_MAX)
                           : cancel_own(to, type, type_size, by->reference);
}

void schedule_forget(struct actor *to)
{
    struct list *node;

    while ((node = list_first(&to->schedules)))
        schedule_end(schedule_of(node, link));
    beats_forget(&to->context->schedules.beats, &to->timers.beats);
}

usec_t schedule_due(const struct schedule *schedule)
{
    return schedule->alarm.date;
}
