/* SPDX-License-Identifier: MIT */

/* Waits for futures, and handles other messages during the wait. */

#include "worker/actor/local-actor.h"

#include "shared/base/cleanup.h"
#include "worker/public.h"

static void actor_failure(struct troupe_actor *actor, int error, const char *reason)
{
    if (actor->on_failure)
        actor->on_failure(actor, error, reason, actor->failure_userdata);
    else
        (void)send_verdict(actor, PROTOCOL_ERRED, 0, -error, *reason ? reason : NULL);
}

/* Frees a future that the program has freed. */
static void dispose(struct troupe_actor *actor, struct troupe_future *future)
{
    if (future->error < 0 && !future->looked_at)
        actor_failure(actor, future->error, future->reason);
    future_delete(&actor->futures, future);
}

void actor_future_ended(struct troupe_actor *actor, struct troupe_future *future)
{
    if (future->then || future->abandoned)
        list_push_back(&actor->endings, &future->then_link);
}

void actor_ending(struct troupe_actor *actor, struct troupe_future *future)
{
    troupe_future_fn then = future->then;

    list_unlink(&future->then_link);
    future->then = NULL;
    if (future->abandoned)
        dispose(actor, future);
    else
        then(actor, future, future->then_userdata);
}

static void lose(struct troupe_actor *actor, struct list *list, uint64_t read)
{
    static const char REASON[] = "the supervisor ended before it answered";

    list_for_each_entry_safe (future, list, struct troupe_future, link) {
        if (future->state != FUTURE_WAITING || future->sent >= read)
            continue;
        future_fail(&actor->futures, future, -ECONNRESET, REASON, sizeof(REASON) - 1);
        actor_future_ended(actor, future);
        actor->n_received++;
    }
}

void actor_lose(struct troupe_actor *actor, uint64_t read, uint32_t kept)
{
    if (!(kept & MEMORY_KEPT_ASKS))
        lose(actor, &actor->futures.asks, read);
    if (!(kept & MEMORY_KEPT_MONITORS))
        lose(actor, &actor->futures.monitors, read);
}

void actor_restarted(struct troupe_actor *actor, uint32_t kept)
{
    const uint32_t all = MEMORY_KEPT_MONITORS | MEMORY_KEPT_TIES;

    if (!actor->on_restart || (kept & all) == all)
        return;
    actor->restarted = true;
    actor->n_received++;
}

static int find_ended(struct troupe_future *const *futures, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (futures[i]->state == FUTURE_ENDED)
            return (int)i;
    return -EAGAIN;
}

/* Handles one message or ended future, if the mode allows it. */
static int run_another(struct troupe_actor *actor, enum troupe_await mode)
{
    int r;

    if (mode != TROUPE_AWAIT_RUN)
        return 0;
    /* The `taken` cursor can describe only one message. */
    if (!list_empty(&actor->queue) && actor_may_handle(actor)) {
        r = actor_shadow(actor, actor->in_hand);
        if (r < 0)
            return r;
        actor_release(actor);
    }
    return actor_run(actor);
}

/* Returns 1 if something arrived, else 0. */
static int wait_for_more(struct troupe_actor *actor, usec_t timeout)
{
    int r = actor_ease(actor);

    if (r == 0)
        r = actor->carrier->class->pump(actor->carrier, timeout);
    if (r == 0 || r == -EINTR) {
        const int given_up = carrier_interrupted(actor->carrier);

        r = given_up < 0 ? given_up : r == -EINTR && timeout > 0;
    }
    return r == -ESHUTDOWN ? -EPIPE : r;
}

_public_ int troupe_future_await_any(struct troupe_future *const *futures, size_t count,
                                     enum troupe_await mode, uint64_t timeout_usec)
{
    const usec_t deadline = clock_deadline(timeout_usec);
    struct troupe_actor *actor;
    int r;

    if (count == 0 || count > INT32_MAX)
        return -EINVAL;
    actor = futures[0]->actor;
    for (;;) {
        usec_t left;

        r = find_ended(futures, count);
        if (r != -EAGAIN)
            return r;
        r = run_another(actor, mode);
        if (r == 0) {
            left = clock_left(deadline);
            r = wait_for_more(actor, left);
            if (r == 0 && left == 0)
                return -EAGAIN;
        }
        if (r < 0)
            return r;
    }
}

/* Returns whether the handler waits for a message that is stashed until the handler returns. */
static bool waits_for_itself(struct troupe_future *future, enum troupe_await mode)
{
    troupe_ref self;

    if (mode != TROUPE_AWAIT_STASH || future->kind != FUTURE_ASK || future->state == FUTURE_ENDED)
        return false;
    return troupe_actor_self(future->actor, &self) == 0 && future->to == self &&
           future->state != FUTURE_ENDED;
}

_public_ int troupe_future_await(struct troupe_future *future, enum troupe_await mode)
{
    int r;

    if (waits_for_itself(future, mode))
        return -EDEADLK;
    r = troupe_future_await_any(&future, 1, mode, USEC_INFINITY);
    return r < 0 ? r : troupe_future_error(future);
}

_public_ void troupe_future_then(struct troupe_future *future, troupe_future_fn fn, void *userdata)
{
    future->then = fn;
    future->then_userdata = userdata;
    list_unlink(&future->then_link);
    if (future->state == FUTURE_ENDED && fn)
        list_push_back(&future->actor->endings, &future->then_link);
}

/* The supervisor has one monitor per pair of actors: only the last future ends it. */
static void unmonitor(struct troupe_future *monitor)
{
    struct troupe_actor *actor = monitor->actor;

    list_for_each_entry (other, &actor->futures.monitors, struct troupe_future, link)
        if (other != monitor && other->state == FUTURE_WAITING && other->to == monitor->to)
            return;
    (void)send_by_reference(actor, PROTOCOL_UNMONITOR, monitor->cookie, monitor->to);
}

_public_ void troupe_future_free(struct troupe_future *future)
{
    struct troupe_actor *actor;

    if (!future)
        return;
    actor = future->actor;
    future->then = NULL;
    list_unlink(&future->then_link);
    if (future->state == FUTURE_ENDED) {
        dispose(actor, future);
    } else if (future->kind == FUTURE_MONITOR) {
        unmonitor(future);
        future_delete(&actor->futures, future);
    } else
        future->abandoned = true;
}

_public_ void troupe_future_drop(struct troupe_future *future)
{
    if (!future)
        return;
    future->looked_at = true;
    if (future->state == FUTURE_WAITING && future->kind == FUTURE_ASK) {
        struct troupe_actor *actor = future->actor;

        (void)send_by_reference(actor, PROTOCOL_ASK_DROP, future->cookie, 0);
        future_delete(&actor->futures, future);
    } else
        troupe_future_free(future);
}

_public_ void troupe_actor_on_signal(struct troupe_actor *actor, troupe_signal_fn fn,
                                     void *userdata)
{
    actor->carrier->on_signal = fn;
    actor->carrier->signal_userdata = userdata;
}

_public_ void troupe_actor_on_failure(struct troupe_actor *actor, troupe_failure_fn fn,
                                      void *userdata)
{
    actor->on_failure = fn;
    actor->failure_userdata = userdata;
}

_public_ void troupe_actor_on_restart(struct troupe_actor *actor, troupe_restart_fn fn,
                                      void *userdata)
{
    actor->on_restart = fn;
    actor->restart_userdata = userdata;
}
