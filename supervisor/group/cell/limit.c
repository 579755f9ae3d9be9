/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/limit.h"

#include "supervisor/loop/loop.h"

/* A claim lasts for this many times the usual wait. A longer one would leave too many units unused.
 */
#define CLAIM_GAPS 4
#define CLAIM_MIN  (10 * USEC_PER_MSEC)

/* ---- the bucket ---- */

static uint64_t nsec(usec_t usec)
{
    return usec > UINT64_MAX / NSEC_PER_USEC ? UINT64_MAX : usec * NSEC_PER_USEC;
}

uint64_t limit_now(const struct limit *limit)
{
    return nsec(loop_now(limit->loop));
}

/* The time in which one unit leaks out. */
static uint64_t interval_of(const struct config_bounds *bounds)
{
    return nsec(bounds->rate.period) / bounds->rate.n;
}

static uint64_t full_at(const struct config_bounds *bounds, uint64_t now)
{
    return limit_has_rate(bounds) ? now + bounds->burst * interval_of(bounds) : 0;
}

/* When there is room for so many units, in nanoseconds. */
static uint64_t room_at(const struct limit *limit, unsigned cost)
{
    const struct config_bounds *bounds = &limit->bounds;
    const uint64_t units = cost < bounds->burst ? cost : bounds->burst;
    const uint64_t rest = (bounds->burst - units) * limit->interval;

    return limit->empty_at > rest ? limit->empty_at - rest : 0;
}

usec_t limit_room_at(const struct limit *limit, unsigned cost)
{
    return limit_has_rate(&limit->bounds) ? room_at(limit, cost) / NSEC_PER_USEC + 1 : 0;
}

void limit_set_bounds(struct limit *limit, const struct config_bounds *bounds)
{
    const uint64_t full = full_at(bounds, limit_now(limit));

    limit->bounds = *bounds;
    limit->interval = limit_has_rate(bounds) ? interval_of(bounds) : 0;
    if (limit->empty_at > full)
        limit->empty_at = full;
}

void limit_fill(struct limit *limit, uint64_t now)
{
    const uint64_t full = full_at(&limit->bounds, now);

    if (limit->empty_at < full)
        limit->empty_at = full;
}

uint64_t limit_ready(const struct limit *limit)
{
    const struct config_bounds *bounds = &limit->bounds;
    const uint64_t interval = limit->interval, now = limit_now(limit);
    const uint64_t left = limit->empty_at > now ? limit->empty_at - now : 0;
    const uint64_t used = left / interval + (left % interval > 0);

    return bounds->burst > used ? bounds->burst - used : 0;
}

bool limit_holds(const struct limit *limit, unsigned cost, enum limit_gate gate)
{
    const struct config_bounds *bounds = &limit->bounds;

    if (gate == LIMIT_RATE)
        return limit_has_rate(bounds) && limit_now(limit) < room_at(limit, cost);
    if (bounds->running == CONFIG_UNSET)
        return false;
    return bounds->running == 0 || limit->n_ending > 0 ||
           (limit->taken > 0 && limit->taken + cost > bounds->running);
}

/* ---- the line ---- */

static struct limit_waiter *first_of(const struct limit *limit)
{
    return list_first_entry(&limit->line, struct limit_waiter, link);
}

static bool is_claimed(const struct limit *limit)
{
    return limit->claimant && loop_now(limit->loop) < limit->claim_until;
}

bool limit_lets(const struct limit *limit, const struct limit_waiter *waiter, unsigned cost)
{
    const struct limit_waiter *next = is_claimed(limit) ? limit->claimant : first_of(limit);

    return (!next || next == waiter) && !limit_holds(limit, cost, LIMIT_RATE) &&
           !limit_holds(limit, cost, LIMIT_RUNNING);
}

static void enter(struct limit *limit, struct limit_waiter *waiter, uint64_t *tag)
{
    struct list *at = limit->line.prev;

    waiter->charged = tag ? waiter->cost : 0;
    if (!tag) {
        waiter->tag =
            at != &limit->line ? list_entry(at, struct limit_waiter, link)->tag : limit->tag;
    } else {
        *tag = (*tag > limit->tag ? *tag : limit->tag) + waiter->cost;
        waiter->tag = *tag;
    }
    while (at != &limit->line && list_entry(at, struct limit_waiter, link)->tag > waiter->tag)
        at = at->prev;
    list_push_front(at, &waiter->link); /* behind it */
    waiter->at = limit;
}

static void enter_first(struct limit *limit, struct limit_waiter *waiter)
{
    waiter->tag = list_empty(&limit->line) ? limit->tag : first_of(limit)->tag;
    waiter->charged = 0;
    list_push_front(&limit->line, &waiter->link);
    waiter->at = limit;
}

void limit_wait(struct limit *limit, struct limit_waiter *waiter, unsigned cost, uint64_t *tag,
                bool first)
{
    waiter->cost = cost;
    if (waiter->at != limit) {
        limit_leave(waiter);
        if (list_empty(&limit->line))
            limit->held_since = loop_now(limit->loop);
        if (first)
            enter_first(limit, waiter);
        else
            enter(limit, waiter, tag);
    }
    limit_review(limit);
}

void limit_refund(struct limit_waiter *waiter, uint64_t *tag)
{
    if (first_of(waiter->at) != waiter)
        *tag -= waiter->charged;
    waiter->charged = 0;
}

void limit_leave(struct limit_waiter *waiter)
{
    struct limit *limit = waiter->at;

    if (!limit)
        return;
    if (first_of(limit) == waiter)
        limit->tag = waiter->tag;
    waiter->at = NULL;
    list_unlink(&waiter->link);
    limit_review(limit);
}

/* The time between two jobs, or since the last one if that is longer. */
static usec_t gap_of(const struct limit *limit)
{
    const usec_t since = usec_sub(loop_now(limit->loop), limit->last_at);

    return since > limit->gap ? since : limit->gap;
}

void limit_claim(struct limit *limit, struct limit_waiter *waiter, const struct limit *other)
{
    const usec_t gap = gap_of(other);

    if (gap > gap_of(limit) || is_claimed(other))
        return;
    limit->claimant = waiter;
    limit->claim_until = usec_add(loop_now(limit->loop), CLAIM_GAPS * gap + CLAIM_MIN);
}

void limit_unclaim(struct limit *limit)
{
    limit->claimant = NULL;
    limit_review(limit);
}

/* Returns when the timer is to look again; USEC_INFINITY = not before a job ends. */
static usec_t due_at(const struct limit *limit, const struct limit_waiter *first)
{
    if (first && is_claimed(limit) && limit->claimant != first)
        return limit->claim_until;
    if (first && limit_holds(limit, first->cost, LIMIT_RATE))
        return limit_room_at(limit, first->cost);
    return USEC_INFINITY;
}

void limit_review(struct limit *limit)
{
    struct limit_waiter *first = first_of(limit);
    usec_t at;

    if (!first && !timer_armed(&limit->timer))
        return;
    at = due_at(limit, first);
    timer_arm(loop_timers(limit->loop), &limit->timer, at);
    if (first && at == USEC_INFINITY && !limit_holds(limit, first->cost, LIMIT_RUNNING))
        first->turn(first); /* the limit may be gone then */
}

static void on_timer(struct timer *timer, usec_t now)
{
    limit_review(list_entry(timer, struct limit, timer));
}

/* ---- what runs ---- */

void limit_take(struct limit *limit, unsigned cost, bool counts)
{
    const uint64_t now = limit_now(limit);

    limit->taken += cost;
    if (counts && limit_has_rate(&limit->bounds))
        limit->empty_at = (limit->empty_at > now ? limit->empty_at : now) + cost * limit->interval;
    limit->gap = usec_sub(loop_now(limit->loop), limit->last_at);
    limit->last_at = limit->held_since = loop_now(limit->loop);
}

void limit_give(struct limit *limit, unsigned cost, bool counts)
{
    const uint64_t span = counts ? cost * limit->interval : 0;

    limit->taken -= limit->taken > cost ? cost : limit->taken;
    limit->empty_at -= limit->empty_at > span ? span : limit->empty_at;
    limit_review(limit);
}

usec_t limit_held(const struct limit *limit)
{
    return list_empty(&limit->line) ? 0 : usec_sub(loop_now(limit->loop), limit->held_since);
}

/* ---- life ---- */

void limit_init(struct limit *limit, const char *name, struct loop *loop)
{
    *limit = (struct limit){.name = name, .loop = loop, .bounds = LIMIT_NO_BOUNDS};
    list_init(&limit->line);
    list_init(&limit->uses);
    timer_init(&limit->timer, on_timer);
}

void limit_deinit(struct limit *limit)
{
    timer_disarm(loop_timers(limit->loop), &limit->timer);
}
