/* SPDX-License-Identifier: MIT */
/* A pool as an actor: one of its slots gets each message. */

#include "supervisor/message/delivery/delivery.h"
#include "supervisor/pool/pool.h"

static struct actor_policy get_policy(const struct actor *actor)
{
    const struct pool *pool = actor->owner;

    return actor_policy_from(pool->config);
}

static bool is_stopped(const struct actor *actor)
{
    const struct pool *pool = actor->owner;

    return census_down(&pool->census);
}

static const struct actor_class POOL_ACTOR = {
    .kind = ACTOR_POOL,
    .deliver = delivery_to_pool,
    .feed = delivery_feed_pool,
    .policy = get_policy,
    .is_stopped = is_stopped,
};

int pool_new_actor(struct pool *pool, struct message_context *messages, uint8_t log)
{
    const struct actor_options options = {
        .class = &POOL_ACTOR, .owner = pool, .name = pool->name, .log = log};
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
