/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/pool.h"

#include "supervisor/message/delivery/delivery.h"
#include "supervisor/pool/pool-private.h"
#include "supervisor/pool/slot/slot-template.h"
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

static void pool_on_starting(struct slot *slot)
{
    list_unlink(&slot->replace_link); /* replaced by this start */
    slot->rolls = false;
}

static void note_start_time(struct slot *slot)
{
    const usec_t took = usec_sub(slot_now(slot), slot->worker.started_at);
    usec_t *average = &slot->pool->start_time;

    if (!slot->worker.adopted)
        *average = *average > 0 ? (3 * *average + took) / 4 : took;
}

static void pool_on_ready(struct slot *slot)
{
    note_start_time(slot);
    pool_replacement_on_ready(slot);
    pool_standby_review(slot);
}

static void pool_on_stopping(struct slot *slot, bool hurry)
{
    pool_replacement_forget(slot);
    pool_standby_dismiss_spare(slot, hurry);
}

static void pool_on_stopped(struct slot *slot)
{
    struct pool *pool = slot->pool;

    if (slot->retired)
        pool_wake(pool);
    if (pool->slots[slot->index]->standby == slot)
        pool_standby_review(slot);
}

static const struct slot_handler POOL_SLOT = {
    .starting = pool_on_starting,
    .ready = pool_on_ready,
    .worn = pool_replacement_queue,
    .stopping = pool_on_stopping,
    .killed = pool_replacement_forget,
    .dying = pool_on_dying,
    .died = pool_on_died,
    .restart_due = pool_on_restart_due,
    .stopped = pool_on_stopped,
};

void pool_init(struct pool *pool, const struct pool_options *options)
{
    *pool = (struct pool){
        .handler = options->handler,
        .slot_handler = &POOL_SLOT,
        .set = options->set,
        .context = options->set->context,
        .config = options->config,
        .name = options->name,
        .key = options->key,
        .census.parent = &options->set->census,
    };
    list_init(&pool->available);
    pool_standby_init(pool);
    pool_replacement_init(pool);
}

/* ---- as an actor: one of its slots gets each message ---- */

static bool is_stopped(const struct actor *actor)
{
    const struct pool *pool = actor->owner;

    return census_down(&pool->census) && !(pool->wanted && pool->size == 0);
}

/* An elastic pool may have no worker yet. */
static int deliver(struct actor *actor, struct envelope *envelope)
{
    int r = delivery_to_pool(actor, envelope);

    if (config_is_elastic(actor->config) && !mailbox_idle(&actor->mailbox))
        pool_wake(actor->owner);
    return r;
}

static const struct actor_class POOL_ACTOR = {
    .kind = ACTOR_POOL,
    .deliver = deliver,
    .feed = delivery_feed_pool,
    .is_stopped = is_stopped,
};

int pool_new_actor(struct pool *pool, struct message_context *messages, uint8_t log)
{
    const struct actor_options options = {.class = &POOL_ACTOR,
                                          .owner = pool,
                                          .name = pool->name,
                                          .log = log,
                                          .config = pool->config};
    int r;

    if (pool->config->type != CONFIG_ACTOR)
        return 0;
    r = actor_new(&pool->actor, messages, &options);
    if (r < 0)
        return r;
    least_loaded_init(&pool->members, pool->config->batch_max);
    pool->actor->members = &pool->members;
    return 0;
}

/* ---- its life ---- */

void pool_deinit(struct pool *pool)
{
    timer_disarm(pool_timers(pool), &pool->spare_timer);
    pool_replacement_deinit(pool);
    for (size_t i = 0; i < pool->n_slots; i++) {
        pool->slots[i]->standby = slot_free(pool->slots[i]->standby);
        slot_free(pool->slots[i]);
    }
    free(pool->slots);
}

void pool_tell(struct pool *pool, struct event event, const char *format, ...)
{
    va_list arguments;

    event.group = pool->config->name;
    event.cell = pool_event_name(pool);
    va_start(arguments, format);
    event_tell(pool->context->events, event, pool->name, format, arguments);
    va_end(arguments);
}

struct slot *pool_next_slot_of(const struct pool *pool, size_t first, size_t n, size_t *cursor)
{
    struct slot **slots;
    size_t i;

    if (first >= pool->n_slots)
        return NULL;
    if (n > pool->n_slots - first)
        n = pool->n_slots - first;
    slots = pool->slots + first;
    while ((i = (*cursor)++) < 2 * n) {
        if (i < n)
            return slots[i];
        if (slots[i - n]->standby)
            return slots[i - n]->standby;
    }
    return NULL;
}

struct slot *pool_next_slot(const struct pool *pool, size_t *cursor)
{
    return pool_next_slot_of(pool, 0, pool->n_slots, cursor);
}

bool pool_is_trimmed(const struct pool *pool)
{
    return pool->n_slots == pool->size;
}

struct slot *pool_take_slot(struct pool *pool)
{
    list_until_empty (slot, &pool->available, struct slot, available_link) {
        list_unlink(&slot->available_link);
        /* A reload may have changed Prefetch= or MaxJobs= since it became available. */
        if (slot_may_take_job(slot))
            return slot;
    }
    return NULL;
}

static void pool_each(struct pool *pool, void (*fn)(struct slot *slot))
{
    for (size_t i = 0; i < pool->size; i++)
        fn(pool->slots[i]);
}

void pool_start(struct pool *pool)
{
    pool->wanted = true;
    pool_each(pool, slot_start);
}

static void slot_resume_or_start(struct slot *slot)
{
    if (slot->resumes)
        slot_resume(slot);
    else if (slot->pool->wanted)
        slot_start(slot);
}

void pool_resume(struct pool *pool)
{
    for (size_t i = 0; i < pool->n_slots; i++) {
        if (slot_has_held_standby(pool->slots[i]))
            pool_standby_restore(pool->slots[i]);
        slot_resume_or_start(pool->slots[i]);
        if (pool->slots[i]->standby)
            pool_standby_resume(pool->slots[i]);
    }
    if (!pool->config->fault)
        pool_roll_behind(pool);
}

void pool_stop(struct pool *pool, bool hurry)
{
    pool->wanted = false;
    pool_each_slot (slot, pool)
        slot_stop(slot, hurry);
}

void pool_restart(struct pool *pool)
{
    pool->wanted = true;
    pool_replacement_set_stopped(pool, false); /* all get the new program */
    for (size_t i = 0; i < pool->n_slots; i++)
        slot_template_renew(pool->slots[i]);
    pool_each(pool, slot_restart);
}

void pool_reset(struct pool *pool)
{
    pool_each(pool, slot_reset);
}

void pool_take_config(struct pool *pool, const struct config_group *config)
{
    pool->config = config;
    pool->members.batch_max = config->batch_max;
    if (pool->actor)
        pool->actor->config = config;
    pool_each_slot (slot, pool)
        slot_take_config(slot);
    pool_standby_review_all(pool);
}

int pool_reserve(struct pool *pool, size_t size)
{
    const size_t before = pool->n_slots;
    struct slot **slots;
    int r;

    if (size <= before)
        return 0;
    slots = realloc(pool->slots, size * sizeof(struct slot *));
    if (!slots)
        return -ENOMEM;
    pool->slots = slots;
    while (pool->n_slots < size) {
        r = slot_new(&slots[pool->n_slots], pool, (unsigned)pool->n_slots, false);
        if (r < 0) {
            while (pool->n_slots > before)
                slot_free(slots[--pool->n_slots]);
            return r;
        }
        slots[pool->n_slots]->retired = true;
        slot_count(slots[pool->n_slots++]);
    }
    return 0;
}

void pool_set_size(struct pool *pool, size_t size)
{
    assert(size <= pool->n_slots);
    pool->size = size;
    for (size_t i = 0; i < pool->n_slots; i++) {
        struct slot *slot = pool->slots[i];
        bool was_retired = slot->retired;
        slot->retired = i >= size;
        slot_count(slot);
        if (slot->standby)
            slot_count(slot->standby);
        if (slot->retired)
            slot_stop(slot, false);
        else if (was_retired && pool->wanted)
            slot_start(slot); /* others that are down were stopped by themselves */
    }
    pool_wake(pool);
}

/* Frees retired slots from the end once they are stopped. */
static void pool_trim(struct pool *pool)
{
    while (pool->n_slots > pool->size) {
        struct slot *last = pool->slots[pool->n_slots - 1];
        /* A standby has the slot's name, which must not be used twice, and a template its cgroup,
         * which could not be removed. */
        if (!last->retired || !slot_is_down(last) || last->standby || !slot_template_is_gone(last))
            return;
        slot_free(last);
        pool->n_slots--;
    }
}

void pool_step(struct pool *pool)
{
    pool_standby_step(pool);
    pool_replacement_step(pool);
    pool_trim(pool);
}
