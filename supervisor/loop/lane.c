/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/lane.h"

static bool is_open(struct lane *lane)
{
    const usec_t now = loop_now(lane->loop);

    if (lane->turn_at != now) {
        lane->turn_at = now;
        lane->spent = 0;
    }
    return lane->spent < LANE_TURN;
}

static void go(struct lane *lane, struct lane_place *place)
{
    const usec_t began = clock_now();
    usec_t took;

    place->fn(place);
    took = usec_sub(clock_now(), began);
    lane->spent += took;
    place->heavy = took >= LANE_HEAVY;
}

static bool go_next(struct lane *lane, struct list *waiting)
{
    struct list *node = list_first(waiting);

    if (!node)
        return false;
    list_unlink(node);
    go(lane, list_entry(node, struct lane_place, link));
    return true;
}

static void lane_on_turn(struct loop_deferred *deferred)
{
    struct lane *lane = list_entry(deferred, struct lane, turn);

    while (is_open(lane) && go_next(lane, &lane->light))
        ;
    /* One at least, or they would wait as long as others come. */
    do {
        if (!go_next(lane, &lane->heavy))
            break;
    } while (is_open(lane));
    if (!list_empty(&lane->light) || !list_empty(&lane->heavy))
        loop_defer(lane->loop, &lane->turn);
}

void lane_init(struct lane *lane, struct loop *loop)
{
    *lane = (struct lane){.loop = loop};
    list_init(&lane->light);
    list_init(&lane->heavy);
    loop_deferred_init(&lane->turn, lane_on_turn);
}

void lane_deinit(struct lane *lane)
{
    loop_undefer(&lane->turn);
}

void lane_place_init(struct lane_place *place, void (*fn)(struct lane_place *place))
{
    *place = (struct lane_place){.fn = fn};
    list_init(&place->link);
}

void lane_enter(struct lane *lane, struct lane_place *place)
{
    if (!place->heavy && is_open(lane)) {
        go(lane, place);
        return;
    }
    if (list_linked(&place->link))
        return;
    list_push_back(place->heavy ? &lane->heavy : &lane->light, &place->link);
    loop_defer(lane->loop, &lane->turn);
}

void lane_leave(struct lane_place *place)
{
    list_unlink(&place->link);
}
