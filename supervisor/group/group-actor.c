/* SPDX-License-Identifier: MIT */
/* A group with Cells=by-key as an actor: it forwards messages to its cells. */

#include "supervisor/group/cell/refusal.h"
#include "supervisor/group/group-private.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/forward.h"
#include "supervisor/message/router.h"
#include "supervisor/pool/slot/slot.h"
#include <string.h>

static struct actor_policy get_policy(const struct actor *actor)
{
    const struct group *group = actor->owner;

    return actor_policy_from(group->config);
}

static bool is_stopped(const struct actor *actor)
{
    const struct group *group = actor->owner;

    return !group->wanted;
}

/* Finds or makes the cell of the message's routing key. */
static int resolve(struct actor *actor, const struct topic *topic, struct actor **ret,
                   const char **ret_reason)
{
    const struct refusal *refusal;
    struct cell *cell;
    int r = group_take_cell(actor->owner, topic->key, topic->key_size, &cell);

    if (r == 0) {
        *ret = cell->pool.actor;
        return 0;
    }
    refusal = refusal_of(r);
    *ret_reason = refusal ? refusal->text : strerror(-r);
    if (r == CELL_E_NO_KEY || r == CELL_E_BAD_KEY)
        return ROUTER_E_NO_KEY;
    if (r == CELL_E_TOO_MANY)
        return ROUTER_E_CELLS;
    return r < 0 ? r : ROUTER_E_GONE;
}

static const struct actor_class GROUP_ACTOR = {
    .kind = ACTOR_GROUP,
    .deliver = forward_deliver,
    .feed = forward_feed,
    .hand_on = forward_to_resolved,
    .policy = get_policy,
    .resolve = resolve,
    .is_stopped = is_stopped,
};

int group_new_actor(struct group *group)
{
    const struct actor_options options = {
        .class = &GROUP_ACTOR, .owner = group, .name = group->name};

    return group->config->type == CONFIG_ACTOR
               ? actor_new(&group->actor, group->context->messages, &options)
               : 0;
}

void group_set_message_log(struct group *group, uint8_t what)
{
    group->message_log = what;
    if (group->actor)
        group->actor->log = what;
    group_each_cell (cell, group) {
        struct slot *slot;
        size_t cursor = 0;

        if (cell->pool.actor)
            cell->pool.actor->log = what;
        while ((slot = pool_next_slot(&cell->pool, &cursor)))
            if (slot->actor)
                slot->actor->log = what;
    }
}
