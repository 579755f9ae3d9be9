/* SPDX-License-Identifier: MIT */

/* Requests to the supervisor: addresses, names, monitors, timers, exchanges, pausing. */

#include "worker/actor/local-actor.h"

#include "shared/protocol/protocol-requests.h"
#include "worker/public.h"
#include <errno.h>
#include <string.h>

int future_answer(struct troupe_future *future, int sent, uint64_t *ret_value)
{
    int r = sent;

    if (r == 0)
        r = troupe_future_await(future, TROUPE_AWAIT_STASH);
    if (r == 0 && ret_value)
        *ret_value = future->value;
    future_delete(&future->actor->futures, future);
    return r;
}

/* Sends a record, whose cookie it sets, and waits for the answer. Returns 0 or -errno. */
#define request(actor, kind, name, record, ret_value)                                              \
    ({                                                                                             \
        struct troupe_future *_future;                                                             \
        int _answer = future_new(&_future, actor, &(actor)->futures, FUTURE_REQUEST);              \
                                                                                                   \
        if (_answer == 0) {                                                                        \
            (record)->cookie = _future->cookie;                                                    \
            _answer = carrier_send((actor)->carrier, kind, name, record, NULL);                    \
            _answer = future_answer(_future, _answer, ret_value);                                  \
        }                                                                                          \
        _answer;                                                                                   \
    })

static int counted(int r, uint64_t count)
{
    if (r < 0)
        return r;
    return count > INT32_MAX ? INT32_MAX : (int)count;
}

static int named(struct troupe_actor *actor, enum protocol_actor_kind kind, const char *name,
                 uint64_t *ret_value)
{
    size_t length = strnlen(name, PROTOCOL_ACTOR_NAME_MAX + 1);
    struct protocol_named named = {.name = name, .name_size = (uint32_t)length};

    if (length > PROTOCOL_ACTOR_NAME_MAX)
        return -EINVAL;
    return request(actor, kind, named, &named, ret_value);
}

_public_ int troupe_actor_lookup(struct troupe_actor *actor, const char *address, troupe_ref *ret)
{
    return *address == '\0' ? -EINVAL : named(actor, PROTOCOL_FIND, address, ret);
}

_public_ int troupe_actor_self(struct troupe_actor *actor, troupe_ref *ret)
{
    int r = 0;

    /* The empty name finds the actor itself. */
    if (actor->self == TROUPE_NOBODY)
        r = named(actor, PROTOCOL_FIND, "", &actor->self);
    if (r == 0)
        *ret = actor->self;
    return r;
}

_public_ const char *troupe_actor_address(const struct troupe_actor *actor)
{
    return actor->address;
}

_public_ int troupe_actor_register(struct troupe_actor *actor, const char *name)
{
    return named(actor, PROTOCOL_REGISTER, name, NULL);
}

_public_ int troupe_actor_deregister(struct troupe_actor *actor, const char *name)
{
    uint64_t count = 0;
    int r = named(actor, PROTOCOL_DEREGISTER, name, &count);

    return r < 0 ? r : count > 0;
}

_public_ int troupe_actor_monitor(struct troupe_actor *actor, troupe_ref who,
                                  struct troupe_future **ret)
{
    struct troupe_future *future;
    int r = future_new(&future, actor, &actor->futures, FUTURE_MONITOR);

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

static int cancel(struct troupe_actor *actor, uint64_t id, troupe_ref to, const char *type)
{
    struct protocol_timer_cancel cancel = {.timer = id, .to = to};
    struct topic topic;
    uint64_t count = 0;
    int r = send_topic(&topic, type, NULL, 0);

    if (r < 0)
        return r;
    cancel.type = topic.type;
    cancel.type_size = topic.type_size;
    r = request(actor, PROTOCOL_TIMER_CANCEL, timer_cancel, &cancel, &count);
    return counted(r, count);
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

_public_ int troupe_actor_exchange_new(struct troupe_actor *actor, const char *name,
                                       enum troupe_exchange_kind kind, troupe_ref *ret)
{
    size_t length = strnlen(name, PROTOCOL_ACTOR_NAME_MAX + 1);
    struct protocol_exchange exchange = {
        .type = (enum exchange_kind)kind, .name = name, .name_size = (uint32_t)length};

    if (length == 0 || length > PROTOCOL_ACTOR_NAME_MAX || (unsigned)kind > TROUPE_EXCHANGE_PATTERN)
        return -EINVAL;
    return request(actor, PROTOCOL_EXCHANGE, exchange, &exchange, ret);
}

static int about(struct troupe_actor *actor, enum protocol_actor_kind kind, troupe_ref which)
{
    struct protocol_by_reference by = {.reference = which};

    return request(actor, kind, by_reference, &by, NULL);
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

static int subscription(struct troupe_actor *actor, enum protocol_actor_kind kind,
                        troupe_ref exchange, const char *type, const void *key, size_t key_size)
{
    struct protocol_subscription subscription = {.exchange = exchange};
    uint64_t count = 0;
    int r = send_topic(&subscription.topic, type, key, key_size);

    if (r < 0)
        return r;
    r = request(actor, kind, subscription, &subscription, &count);
    return counted(r, count);
}

_public_ int troupe_actor_subscribe(struct troupe_actor *actor, troupe_ref exchange,
                                    const char *type, const void *key, size_t key_size)
{
    int r = subscription(actor, PROTOCOL_SUBSCRIBE, exchange, type, key, key_size);

    return r < 0 ? r : 0;
}

_public_ int troupe_actor_unsubscribe(struct troupe_actor *actor, troupe_ref exchange,
                                      const char *type, const void *key, size_t key_size)
{
    return subscription(actor, PROTOCOL_UNSUBSCRIBE, exchange, type, key, key_size);
}
