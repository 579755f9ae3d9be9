/* SPDX-License-Identifier: MIT */

/* Asks the supervisor for names, monitors, timers and exchanges. */

#include "worker/actor/actor.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "worker/public.h"
#include <string.h>

/*
 * What the supervisor does for an actor and answers: addresses, names, monitors, timers, exchanges.
 * Each of these calls is one question and its answer.
 */

#define FIXED_FIELDS 192u

struct question {
    struct troupe_actor *actor;
    struct troupe_future *future;
    void *body;
    uint32_t room;
};

static int question(struct question *ret, struct troupe_actor *actor, size_t size)
{
    int r;

    *ret = (struct question){.actor = actor, .room = FIXED_FIELDS + (uint32_t)size};
    r = actor->carrier.class->reserve(actor->carrier.owner, ret->room, &ret->body);
    return r < 0 ? r : future_new(&ret->future, actor, &actor->futures, FUTURE_REQUEST);
}

int send_request(struct troupe_actor *actor, struct troupe_future *future, int sent,
                 uint64_t *ret_value)
{
    int r;

    if (sent < 0) {
        future_delete(&actor->futures, future);
        return sent;
    }
    r = actor_request(actor, future, ret_value);
    return r < 0 ? r : 0;
}

/* `size` is what a put function returned. */
static int put(struct question *question, enum protocol_actor_kind kind, int size,
               uint64_t *ret_value)
{
    const struct carrier *carrier = &question->actor->carrier;

    return send_request(question->actor, question->future,
                        carrier->class->commit(carrier->owner, (uint16_t)kind, size), ret_value);
}

/* For those that return how many. */
static int put_count(struct question *question, enum protocol_actor_kind kind, int size)
{
    uint64_t count = 0;
    int r = put(question, kind, size, &count);

    return r < 0 ? r : count > INT32_MAX ? INT32_MAX : (int)count;
}

/* ---- addresses and names ---- */

static int named(struct troupe_actor *actor, enum protocol_actor_kind kind, const char *name,
                 uint64_t *ret_value)
{
    size_t length = strnlen(name, PROTOCOL_ACTOR_NAME_MAX + 1);
    struct protocol_named what = {.name = name, .name_size = (uint32_t)length};
    struct question q;
    int r;

    if (length > PROTOCOL_ACTOR_NAME_MAX)
        return -EINVAL;
    r = question(&q, actor, length);
    if (r < 0)
        return r;
    what.cookie = q.future->cookie;
    return put(&q, kind, protocol_put_named(q.body, q.room, &what), ret_value);
}

_public_ int troupe_actor_lookup(struct troupe_actor *actor, const char *address, troupe_ref *ret)
{
    return *address == '\0' ? -EINVAL : named(actor, PROTOCOL_FIND, address, ret);
}

_public_ int troupe_actor_self(struct troupe_actor *actor, troupe_ref *ret)
{
    int r;

    if (!actor->self_known || actor->self == TROUPE_NOBODY) {
        /* By no name at all one finds oneself. */
        r = named(actor, PROTOCOL_FIND, "", &actor->self);
        if (r < 0)
            return r;
        actor->self_known = true;
    }
    *ret = actor->self;
    return 0;
}

_public_ int troupe_actor_register(struct troupe_actor *actor, const char *name)
{
    uint64_t ignored;

    return named(actor, PROTOCOL_REGISTER, name, &ignored);
}

_public_ int troupe_actor_deregister(struct troupe_actor *actor, const char *name)
{
    uint64_t count = 0;
    int r = named(actor, PROTOCOL_DEREGISTER, name, &count);

    return r < 0 ? r : count > 0;
}

/* ---- monitors ---- */

_public_ int troupe_actor_monitor(struct troupe_actor *actor, troupe_ref who,
                                  struct troupe_future **ret)
{
    struct troupe_future *future;
    int r;

    r = future_new(&future, actor, &actor->futures, FUTURE_MONITOR);
    if (r < 0)
        return r;
    future->to = who;
    r = send_by_reference(actor, PROTOCOL_MONITOR, future->cookie, who);
    if (r < 0)
        future_delete(&actor->futures, future);
    else
        *ret = future;
    return r;
}

/* ---- timers ---- */

static int cancel(struct troupe_actor *actor, uint64_t id, troupe_ref to, const char *type)
{
    struct protocol_timer_cancel what = {.timer = id, .to = to};
    struct topic topic;
    struct question q;
    int r;

    r = send_topic(&topic, type, NULL, 0);
    if (r == 0)
        r = question(&q, actor, topic.type_size);
    if (r < 0)
        return r;
    what.cookie = q.future->cookie;
    what.type = topic.type;
    what.type_size = topic.type_size;
    return put_count(&q, PROTOCOL_TIMER_CANCEL, protocol_put_timer_cancel(q.body, q.room, &what));
}

_public_ int troupe_actor_timer_cancel(struct troupe_actor *actor, uint64_t id)
{
    return id == 0 ? 0 : cancel(actor, id, TROUPE_NOBODY, "");
}

_public_ int troupe_actor_timer_cancel_type(struct troupe_actor *actor, troupe_ref to,
                                            const char *type)
{
    return cancel(actor, 0, to, type);
}

/* ---- exchanges ---- */

_public_ int troupe_actor_exchange_new(struct troupe_actor *actor, const char *name,
                                       enum troupe_exchange_kind kind, troupe_ref *ret)
{
    size_t length = strnlen(name, PROTOCOL_ACTOR_NAME_MAX + 1);
    struct protocol_exchange what = {.name = name, .name_size = (uint32_t)length};
    struct question q;
    int r;

    if (length == 0 || length > PROTOCOL_ACTOR_NAME_MAX || (unsigned)kind > TROUPE_EXCHANGE_PATTERN)
        return -EINVAL;
    what.type = (enum exchange_kind)kind;
    r = question(&q, actor, length);
    if (r < 0)
        return r;
    what.cookie = q.future->cookie;
    return put(&q, PROTOCOL_EXCHANGE, protocol_put_exchange(q.body, q.room, &what), ret);
}

/* A question about one actor, answered with nothing but success. */
static int about(struct troupe_actor *actor, enum protocol_actor_kind kind, troupe_ref which)
{
    struct protocol_by_reference by = {.reference = which};
    uint64_t ignored;
    struct question q;
    int r;

    r = question(&q, actor, 0);
    if (r < 0)
        return r;
    by.cookie = q.future->cookie;
    return put(&q, kind, protocol_put_by_reference(q.body, q.room, &by), &ignored);
}

_public_ int troupe_actor_exchange_delete(struct troupe_actor *actor, troupe_ref exchange)
{
    return about(actor, PROTOCOL_EXCHANGE_DELETE, exchange);
}

_public_ int troupe_actor_pause(struct troupe_actor *actor, troupe_ref which)
{
    return about(actor, PROTOCOL_PAUSE, which);
}

_public_ int troupe_actor_resume(struct troupe_actor *actor, troupe_ref which)
{
    return about(actor, PROTOCOL_RESUME, which);
}

_public_ const char *troupe_actor_address(const struct troupe_actor *actor)
{
    return actor->carrier.address;
}

static int subscription(struct troupe_actor *actor, enum protocol_actor_kind kind,
                        troupe_ref exchange, const struct topic *topic)
{
    struct protocol_subscription what = {.exchange = exchange, .topic = *topic};
    struct question q;
    int r;

    r = question(&q, actor, topic->type_size + topic->key_size);
    if (r < 0)
        return r;
    what.cookie = q.future->cookie;
    return put_count(&q, kind, protocol_put_subscription(q.body, q.room, &what));
}

_public_ int troupe_actor_subscribe(struct troupe_actor *actor, troupe_ref exchange,
                                    const char *type, const void *key, size_t key_size)
{
    struct topic topic;
    int r = send_topic(&topic, type, key, key_size);

    if (r == 0)
        r = subscription(actor, PROTOCOL_SUBSCRIBE, exchange, &topic);
    return r < 0 ? r : 0;
}

_public_ int troupe_actor_unsubscribe(struct troupe_actor *actor, troupe_ref exchange,
                                      const char *type, const void *key, size_t key_size)
{
    struct topic topic;
    int r = send_topic(&topic, type, key, key_size);

    return r < 0 ? r : subscription(actor, PROTOCOL_UNSUBSCRIBE, exchange, &topic);
}
