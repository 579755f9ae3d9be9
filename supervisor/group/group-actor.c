/* SPDX-License-Identifier: MIT */

/* A group with Cells=by-key as an actor. */

#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group-private.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/forward.h"
#include "supervisor/message/router.h"
#include "supervisor/pool/slot/slot.h"
#include <string.h>

/* ---- Cells=by-key ---- */

static struct actor_policy get_policy(const struct actor *actor)
{
    const struct group *group = actor->owner;

    return actor_policy_from(group->config);
}

/* Its cells begin with their first message. */
static bool is_stopped(const struct actor *actor)
{
    const struct group *group = actor->owner;

    return !group->wanted;
}

/* The cell of the message's routing key, made if need be. */
static int resolve(struct actor *actor, const struct topic *topic, struct actor **ret,
                   const char **ret_reason)
{
    struct cell *cell;
    int r;

    r = group_take_cell(actor->owner, topic->key, topic->key_size, &cell);
    switch (r) {
    case 0:
        *ret = cell->pool.actor;
        return 0;
    case CELL_E_NO_KEY:
        *ret_reason = "the group has Cells=by-key, and the message no routing key";
        return ROUTER_E_NO_KEY;
    case CELL_E_BAD_KEY:
        *ret_reason = "its routing key cannot name a cell";
        return ROUTER_E_NO_KEY;
    case CELL_E_TOO_MANY:
        *ret_reason = "CellsMax= is reached";
        return ROUTER_E_CELLS;
    default:
        *ret_reason = r < 0 ? strerror(-r) : "no such cell";
        return r < 0 ? r : ROUTER_E_GONE;
    }
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

/* ---- the log of messages ---- */

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
