/* SPDX-License-Identifier: MIT */
#include "worker/actor/local-actor.h"

#include "shared/base/cleanup.h"
#include "worker/public.h"

void actor_init(struct troupe_actor *actor, struct carrier *carrier, const char *address)
{
    *actor = (struct troupe_actor){.carrier = carrier,
                                   .address = address,
                                   .silence = USEC_INFINITY,
                                   .silence_at = USEC_INFINITY};
    list_init(&actor->queue);
    list_init(&actor->stash);
    list_init(&actor->held);
    list_init(&actor->endings);
    futures_init(&actor->futures);
}

static void free_mail(struct list *list)
{
    list_for_each_entry_safe (message, list, struct troupe_message, link)
        mail_free(message);
}

void actor_deinit(struct troupe_actor *actor)
{
    free_mail(&actor->queue);
    free_mail(&actor->stash);
    futures_deinit(&actor->futures);
    handlers_deinit(&actor->handlers);
}

uint32_t actor_control(const struct troupe_actor *actor)
{
    /* Partner: the supervisor's store at stop or pause. No other data depends on it. */
    return atomic_load_explicit(&actor->carrier->channel.their_words->control,
                                memory_order_relaxed);
}

bool actor_stopped(const struct troupe_actor *actor)
{
    return actor_control(actor) & MEMORY_CONTROL_STOP;
}

bool actor_may_handle(const struct troupe_actor *actor)
{
    return !(actor_control(actor) & (MEMORY_CONTROL_STOP | MEMORY_CONTROL_PAUSE));
}

bool actor_control_changed(struct troupe_actor *actor)
{
    uint32_t before = actor->seen_control;

    actor->seen_control = actor_control(actor);
    return actor->seen_control != before;
}

static void store_taken(struct troupe_actor *actor, uint32_t cursor)
{
    /* Partner: the supervisor's load after this process died. It also reads the head, which is
     * stored with release. */
    atomic_store_explicit(&actor->carrier->channel.mine.header->taken, cursor,
                          memory_order_relaxed);
}

void actor_hold(struct troupe_actor *actor)
{
    struct ring_consumer *in = &actor->carrier->channel.in;
    const struct list *first = list_first(&actor->held);

    in->holding = first || actor->pinned;
    if (first)
        in->hold = list_entry(first, struct troupe_message, held_link)->begin;
    /* Compares distances from `released`, because cursors wrap. */
    if (actor->pinned && (!first || actor->pin - in->released < in->hold - in->released))
        in->hold = actor->pin;
}

static bool holds_by_itself(const struct troupe_message *message)
{
    return message && message->stage == MAIL_IN_HAND && !message->shadowed;
}

void actor_release(struct troupe_actor *actor)
{
    const struct ring_consumer *in = &actor->carrier->channel.in;

    actor_hold(actor);
    if (!holds_by_itself(actor->in_hand))
        store_taken(actor, in->holding ? in->hold : in->head);
    channel_release(&actor->carrier->channel);
}

int actor_shadow(struct troupe_actor *actor, struct troupe_message *message)
{
    int r;

    if (!message || message->shadowed || message->stage == MAIL_DONE)
        return 0;
    r = send_stash(actor, PROTOCOL_STASHED, message->wire.id,
                   message->stage == MAIL_IN_HAND ? PROTOCOL_STASH_IN_HAND : 0);
    if (r < 0)
        return r;
    message->shadowed = true;
    list_unlink(&message->held_link);
    return 0;
}

int actor_ease(struct troupe_actor *actor)
{
    const struct ring_consumer *in = &actor->carrier->channel.in;
    int r = 0;

    if (actor->easing || in->head - in->released <= in->size / 4)
        return 0;
    actor->easing = true;
    while (r == 0 && !list_empty(&actor->held))
        r = actor_shadow(actor, list_first_entry(&actor->held, struct troupe_message, held_link));
    actor->easing = false;
    actor_release(actor);
    if (r == 0 && actor->pinned && in->head - in->released > in->size / 2)
        r = -ENOBUFS;
    return r;
}

static int call_handler(struct troupe_actor *actor, struct troupe_message *message)
{
    const struct handler *handler;

    if (message->error < 0)
        return troupe_message_fail(message, -message->error, content_problem(message->error));
    if (actor->became)
        return actor->behaviour ? actor->behaviour(actor, message, actor->behaviour_userdata)
                                : TROUPE_NOT_HANDLED;
    handler = handlers_find(&actor->handlers, message->content.type);
    return handler ? handler->fn(actor, message, handler->userdata) : TROUPE_NOT_HANDLED;
}

static int take_in_hand(struct troupe_actor *actor, struct troupe_message *message)
{
    message->stage = MAIL_IN_HAND;
    message->outer = actor->in_hand;
    actor->in_hand = message;
    if (message->shadowed)
        return send_stash(actor, PROTOCOL_STASHED, message->wire.id, PROTOCOL_STASH_IN_HAND);
    store_taken(actor, message->end);
    return 0;
}

/* Reports the end of a message to the supervisor. */
static int tell_end(struct troupe_actor *actor, struct troupe_message *message, int result)
{
    uint64_t id = message->wire.id;

    if (result < 0)
        return send_verdict(actor, PROTOCOL_ERRED, id, message->failed ? message->code : -result,
                            message->text);
    if (result == TROUPE_NOT_HANDLED)
        return send_verdict(actor, PROTOCOL_UNHANDLED, id, 0,
                            actor->became && !actor->behaviour ? "the actor has become nothing"
                                                               : "no handler took it");
    return message->shadowed ? send_stash(actor, PROTOCOL_UNSTASHED, id, 0) : 0;
}

static int put_down(struct troupe_actor *actor, struct troupe_message *message, int result)
{
    int r = 0;

    actor->in_hand = message->outer;
    if (message->stage == MAIL_IN_HAND)
        r = tell_end(actor, message, result);
    if (message->stage != MAIL_STASHED)
        mail_free(message);
    actor_release(actor);
    return r;
}

static int handle(struct troupe_actor *actor, struct troupe_message *message)
{
    int r;

    list_unlink(&message->link);
    r = take_in_hand(actor, message);
    if (r == 0)
        r = put_down(actor, message, call_handler(actor, message));
    if (actor->silence != USEC_INFINITY)
        actor->silence_at = usec_add(clock_now(), actor->silence);
    return r < 0 ? r : 1;
}

int actor_run(struct troupe_actor *actor)
{
    struct list *first = list_first(&actor->endings);

    if (actor->restarted) {
        actor->restarted = false;
        actor->on_restart(actor, actor->restart_userdata);
        return 1;
    }
    if (first) {
        actor_ending(actor, list_entry(first, struct troupe_future, then_link));
        return 1;
    }
    first = list_first(&actor->queue);
    if (!first || !actor_may_handle(actor))
        return 0;
    return handle(actor, list_entry(first, struct troupe_message, link));
}

usec_t actor_patience(const struct troupe_actor *actor, usec_t timeout)
{
    usec_t left;

    if (actor->silence_at == USEC_INFINITY || timeout == 0)
        return timeout;
    left = usec_sub(actor->silence_at, clock_now());
    return left < timeout ? left : timeout;
}

bool actor_silent(struct troupe_actor *actor)
{
    if (actor->silence_at == USEC_INFINITY || clock_now() < actor->silence_at)
        return false;
    actor->silence_at = usec_add(clock_now(), actor->silence);
    actor->on_silence(actor, actor->silence_userdata);
    return true;
}

_public_ int troupe_actor_turn(struct troupe_actor *actor, uint64_t timeout_usec)
{
    return actor->carrier->class->turn(actor->carrier, timeout_usec);
}

_public_ int troupe_actor_on_message(struct troupe_actor *actor, const char *type,
                                     troupe_message_fn fn, void *userdata)
{
    return handlers_set(&actor->handlers, type, fn, userdata);
}

_public_ void troupe_actor_become(struct troupe_actor *actor, troupe_message_fn fn, void *userdata)
{
    actor->became = true;
    actor->behaviour = fn;
    actor->behaviour_userdata = userdata;
}

_public_ void troupe_actor_become_default(struct troupe_actor *actor)
{
    actor->became = false;
}

_public_ void troupe_actor_on_silence(struct troupe_actor *actor, uint64_t timeout_usec,
                                      troupe_silence_fn fn, void *userdata)
{
    bool wanted = timeout_usec != 0 && timeout_usec != USEC_INFINITY && fn;

    actor->silence = wanted ? timeout_usec : USEC_INFINITY;
    actor->silence_at = wanted ? usec_add(clock_now(), timeout_usec) : USEC_INFINITY;
    actor->on_silence = fn;
    actor->silence_userdata = userdata;
}

_public_ int troupe_message_stash(struct troupe_message *message)
{
    struct troupe_actor *actor = message->actor;
    int r;

    if (message->stage != MAIL_IN_HAND)
        return -EALREADY;
    r = send_stash(actor, PROTOCOL_STASHED, message->wire.id, 0);
    if (r < 0)
        return r;
    message->stage = MAIL_STASHED;
    message->shadowed = true;
    list_unlink(&message->held_link);
    list_push_back(&actor->stash, &message->link);
    return 0;
}

/* Also finds a stashed message whose handler has not returned. */
static bool is_in_hand(const struct troupe_actor *actor, const struct troupe_message *message)
{
    const struct troupe_message *one = actor->in_hand;

    while (one && one != message)
        one = one->outer;
    return one;
}

_public_ int troupe_actor_unstash_all(struct troupe_actor *actor)
{
    int n = 0;

    /* Messages whose handler has not returned stay in the stash. */
    for (struct list *node = actor->stash.prev, *before; node != &actor->stash; node = before) {
        struct troupe_message *message = list_entry(node, struct troupe_message, link);

        before = node->prev;
        if (is_in_hand(actor, message))
            continue;
        message->stage = MAIL_WAITING;
        list_unlink(node);
        list_push_front(&actor->queue, node);
        n++;
    }
    return n;
}
