/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-limit-gate.h"

#include "supervisor/group/cell/cell-private.h"

/* A claim lasts for so many times the usual wait. During a longer one, too many units would be free
 * that no job gets. */
#define CLAIM_GAPS 4
#define CLAIM_MIN  (10 * USEC_PER_MSEC)

/* ---- levels ---- */

static uint64_t nsec(usec_t usec)
{
    return usec > UINT64_MAX / NSEC_PER_USEC ? UINT64_MAX : usec * NSEC_PER_USEC;
}

uint64_t limit_now(const struct loop *loop)
{
    return nsec(loop_now(loop));
}

/* The time in which one unit leaks out of a bucket. */
static uint64_t interval_of(const struct config_bounds *bounds)
{
    return nsec(bounds->rate.period) / bounds->rate.n;
}

uint64_t limit_full_at(const struct config_bounds *bounds, uint64_t now)
{
    return now + bounds->burst * interval_of(bounds);
}

uint64_t limit_room_at(const struct config_bounds *bounds, const struct limit_level *level,
                       unsigned cost)
{
    const uint64_t units = cost < bounds->burst ? cost : bounds->burst;
    const uint64_t rest = (bounds->burst - units) * interval_of(bounds);

    return level->empty_at > rest ? level->empty_at - rest : 0;
}

bool limit_level_holds(const struct config_bounds *bounds, const struct limit_level *level,
                       unsigned cost, enum limit_gate gate, uint64_t now)
{
    if (gate == LIMIT_RATE)
        return limit_has_rate(bounds) && now < limit_room_at(bounds, level, cost);
    return bounds->running == 0 || (bounds->running != CONFIG_UNSET && level->taken > 0 &&
                                    level->taken + cost > bounds->running);
}

void limit_level_take(const struct config_bounds *bounds, struct limit_level *level, unsigned cost,
                      bool counts, uint64_t now)
{
    level->taken += cost;
    if (counts && limit_has_rate(bounds))
        level->empty_at =
            (level->empty_at > now ? level->empty_at : now) + cost * interval_of(bounds);
}

void limit_level_give(const struct config_bounds *bounds, struct limit_level *level, unsigned cost,
                      bool counts)
{
    const uint64_t span = counts && limit_has_rate(bounds) ? cost * interval_of(bounds) : 0;

    level->taken -= level->taken > cost ? cost : level->taken;
    level->empty_at -= level->empty_at > span ? span : level->empty_at;
}

/* ---- limits ---- */

static void on_timer(struct timer *timer, usec_t now)
{
    (void)now;
    limit_pass_on(list_entry(timer, struct limit, timer));
}

void limit_init(struct limit *limit, const char *name, struct loop *loop)
{
    *limit = (struct limit){.name = name, .loop = loop, .bounds = LIMIT_NO_BOUNDS};
    list_init(&limit->uses);
    list_init(&limit->waiting);
    timer_init(&limit->timer, on_timer);
}

void limit_deinit(struct limit *limit)
{
    timer_disarm(loop_timers(limit->loop), &limit->timer);
}

void limit_set_bounds(struct limit *limit, const struct config_bounds *bounds)
{
    const uint64_t full =
        limit_has_rate(bounds) ? limit_full_at(bounds, limit_now(limit->loop)) : 0;

    limit->bounds = *bounds;
    if (limit->level.empty_at > full)
        limit->level.empty_at = full;
    limit_pass_on(limit);
}

bool limit_holds(const struct limit *limit, unsigned cost, enum limit_gate gate)
{
    return limit_level_holds(&limit->bounds, &limit->level, cost, gate, limit_now(limit->loop));
}

static bool is_claimed(const struct limit *limit)
{
    return limit->claimant && loop_now(limit->loop) < limit->claim_until;
}

bool limit_is_others(const struct limit *limit, const struct cell *cell)
{
    const bool has_turn = cell->limit_turn && cell->limit_turn->limit == limit;

    if (is_claimed(limit))
        return limit->claimant != cell;
    return !list_empty(&limit->waiting) && !has_turn;
}

void limit_wait(struct limit_use *use, struct cell *cell, unsigned cost, bool first)
{
    struct limit *limit = use->limit;

    if (list_empty(&limit->waiting))
        limit->held_since = loop_now(limit->loop);
    if (first)
        list_push_front(&limit->waiting, &cell->limit_link);
    else
        list_push_back(&limit->waiting, &cell->limit_link);
    cell->limit_use = use;
    cell->limit_cost = cost;
    use->n_cells++;
}

void limit_leave(struct cell *cell)
{
    if (!list_linked(&cell->limit_link))
        return;
    list_unlink(&cell->limit_link);
    cell->limit_use->n_cells--;
}

/* The time between two jobs, or since the last one if that is longer. */
static usec_t gap_of(const struct limit *limit)
{
    const usec_t since = usec_sub(loop_now(limit->loop), limit->last_at);

    return since > limit->gap ? since : limit->gap;
}

void limit_claim(struct limit *limit, struct cell *cell, const struct limit *other)
{
    const usec_t gap = gap_of(other);

    if (gap > gap_of(limit) || is_claimed(other))
        return;
    limit->claimant = cell;
    limit->claim_until = usec_add(loop_now(limit->loop), CLAIM_GAPS * gap + CLAIM_MIN);
}

/* Without memory for the timer, the next job that ends is what continues. */
static void arm(struct limit *limit, usec_t at)
{
    const usec_t next = usec_add(loop_now(limit->loop), 1); /* in the next turn */

    (void)timer_arm(loop_timers(limit->loop), &limit->timer, at > next ? at : next);
}

void limit_pass_on(struct limit *limit)
{
    struct list *node = list_first(&limit->waiting);
    struct cell *cell = node ? list_entry(node, struct cell, limit_link) : NULL;

    if (!cell)
        return;
    if (is_claimed(limit))
        arm(limit, limit->claim_until);
    else if (limit_holds(limit, cell->limit_cost, LIMIT_RATE))
        arm(limit,
            limit_room_at(&limit->bounds, &limit->level, cell->limit_cost) / NSEC_PER_USEC + 1);
    else if (!limit_holds(limit, cell->limit_cost, LIMIT_RUNNING))
        cell_wake(cell);
}

void limit_take(struct limit_use *use, unsigned cost, bool counts)
{
    struct limit *limit = use->limit;
    const usec_t now = loop_now(limit->loop);

    limit_level_take(&limit->bounds, &limit->level, cost, counts, limit_now(limit->loop));
    use->taken += cost;
    limit->gap = usec_sub(now, limit->last_at);
    limit->last_at = limit->held_since = now;
}

void limit_give(struct limit_use *use, unsigned cost, bool counts)
{
    limit_level_give(&use->limit->bounds, &use->limit->level, cost, counts);
    use->taken -= use->taken > cost ? cost : use->taken;
    limit_pass_on(use->limit);
}

usec_t limit_held(const struct limit *limit)
{
    return list_empty(&limit->waiting) ? 0 : usec_sub(loop_now(limit->loop), limit->held_since);
}

uint64_t limit_ready(const struct limit *limit)
{
    const struct config_bounds *bounds = &limit->bounds;
    const uint64_t interval = interval_of(bounds), now = limit_now(limit->loop);
    const uint64_t left = limit->level.empty_at > now ? limit->level.empty_at - now : 0;
    const uint64_t used = left / interval + (left % interval > 0);

    return bounds->burst > used ? bounds->burst - used : 0;
}
