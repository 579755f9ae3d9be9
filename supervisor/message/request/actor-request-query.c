/* SPDX-License-Identifier: MIT */

/* Requests about names, monitors, timers and pauses, which are answered at once. */

#include "shared/protocol/protocol-requests.h"
#include "supervisor/channel/answer.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include "supervisor/message/request/actor-request-private.h"
#include "supervisor/message/schedule/schedule.h"
#include <errno.h>
#include <string.h>

/* ---- names ---- */

/* Copied out of the record, as a string; what has NUL bytes in it names nobody. */
static int take_name(const struct ring_record *record, struct protocol_named *named, char *name)
{
    int r = protocol_get_named(record->body, record->size, named);

    if (r < 0)
        return r;
    memcpy(name, named->name, named->name_size);
    name[named->name_size] = '\0';
    return 0;
}

static int on_find(struct actor *actor, const struct ring_record *record)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct actor *to = actor_self(actor); /* found by an empty name */
    struct protocol_named named;
    int r;

    r = take_name(record, &named, name);
    if (r < 0)
        return r;
    if (*name != '\0')
        to = actor_by_address(actor->context, name);
    if (!to)
        return answer_refuse(actor->inbox.endpoint, named.cookie, ENOENT,
                             "no such group, exchange or name");
    return answer_found(actor->inbox.endpoint,
                        &(struct protocol_found){.cookie = named.cookie, .group = to->reference});
}

struct actor *actor_request_owner(struct actor *actor)
{
    return actor_is(actor, ACTOR_CLIENT) ? NULL : actor_self(actor);
}

int actor_request_refuse_name(struct actor *actor, uint64_t cookie, int r)
{
    switch (r) {
    case ACTOR_E_EXISTS:
        return answer_refuse(actor->inbox.endpoint, cookie, EEXIST,
                             "a group, an exchange or an actor has that name");
    case ACTOR_E_BAD_NAME:
        return answer_refuse(
            actor->inbox.endpoint, cookie, EINVAL,
            "malformed name: 1 to 255 characters of A-Z a-z 0-9 . _ : -, the first a "
            "letter or digit");
    case ACTOR_E_TOO_MANY:
        return answer_refuse(actor->inbox.endpoint, cookie, EBUSY, "too many names, or exchanges");
    default:
        return answer_errno(actor->inbox.endpoint, cookie, r);
    }
}

static int on_register(struct actor *actor, const struct ring_record *record)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct protocol_named named;
    int r;

    r = take_name(record, &named, name);
    if (r < 0)
        return r;
    r = actor_register(actor_self(actor), name);
    return r == 0 ? answer_value(actor->inbox.endpoint, named.cookie, 1)
                  : actor_request_refuse_name(actor, named.cookie, r);
}

static int on_deregister(struct actor *actor, const struct ring_record *record)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct protocol_named named;
    bool valid, had;
    int r;

    r = take_name(record, &named, name);
    if (r < 0)
        return r;
    valid = actor_name_valid(name, named.name_size);
    had = valid && actor_deregister(actor_self(actor), name);
    if (!had)
        actor_log(actor, LOG_LEVEL_WARNING, "deregisters a name that it has not: %s",
                  valid ? name : "(malformed)");
    return answer_value(actor->inbox.endpoint, named.cookie, had);
}

/* ---- watches ---- */

static int on_monitor(struct actor *actor, const struct ring_record *record)
{
    struct protocol_by_reference by;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    r = monitor_add(actor, by.reference);
    if (r < 0)
        return answer_errno(actor->inbox.endpoint, by.cookie, r);
    if (r != 0)
        return answer_refuse(actor->inbox.endpoint, by.cookie, EBUSY, "too many watches");
    return answer_value(actor->inbox.endpoint, by.cookie, 0);
}

static int on_unmonitor(struct actor *actor, const struct ring_record *record)
{
    struct protocol_by_reference by;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    return answer_value(actor->inbox.endpoint, by.cookie, monitor_remove(actor, by.reference));
}

/* ---- timers ---- */

static int set_timer(struct actor *actor, const struct protocol_timer *timer,
                     struct envelope *envelope)
{
    struct message_context *context = actor->context;
    const struct schedule_options options = {
        .to = actor_get(&context->actors, timer->to),
        .sender = actor_self(actor)->reference,
        .at = timer->at,
        .period = timer->period,
        .realtime = timer->flags & PROTOCOL_TIMER_REALTIME,
        .topic = &envelope->topic,
        .payload = &envelope->payload,
    };
    uint64_t id;
    int r;

    if (!options.to)
        return answer_refuse(actor->inbox.endpoint, timer->cookie, ENOENT, "its recipient is gone");
    if (timer->period > 0 && timer->period < SCHEDULE_PERIOD_MIN)
        return answer_refuse(actor->inbox.endpoint, timer->cookie, EINVAL,
                             "period: 0, or 1ms and more");
    r = schedule_add(context, &options, &id);
    if (r < 0)
        return answer_errno(actor->inbox.endpoint, timer->cookie, r);
    if (r == SCHEDULE_E_SHARE)
        return answer_refuse(actor->inbox.endpoint, timer->cookie, EBUSY,
                             "too many timers of its own: at most 100000, with 64 MiB to tell");
    if (r != 0)
        return answer_refuse(actor->inbox.endpoint, timer->cookie, EBUSY,
                             "too many timers: at most 1000000 of all, with 512 MiB to tell");
    return answer_value(actor->inbox.endpoint, timer->cookie, id);
}

static int on_timer(struct actor *actor, const struct ring_record *record)
{
    struct protocol_timer timer;
    struct envelope *envelope;
    int r;

    r = protocol_get_timer(record->body, record->size, &timer);
    if (r < 0)
        return r;
    r = actor_request_take_envelope(actor, PROTOCOL_MESSAGE, &timer.content, &envelope);
    if (r == -ENOMEM || r == -EMFILE)
        return answer_errno(actor->inbox.endpoint, timer.cookie, r);
    if (r < 0)
        return r;
    r = set_timer(actor, &timer, envelope);
    envelope_free(envelope);
    return r;
}

static int on_timer_cancel(struct actor *actor, const struct ring_record *record)
{
    struct protocol_timer_cancel cancel;
    char type[TOPIC_TYPE_MAX];
    const struct actor *by = actor_request_owner(actor);
    struct actor *to;
    unsigned n = 0;
    int r;

    r = protocol_get_timer_cancel(record->body, record->size, &cancel);
    if (r < 0)
        return r;
    if (cancel.type_size > 0)
        memcpy(type, cancel.type, cancel.type_size);
    to = actor_get(&actor->context->actors, cancel.to);
    if (cancel.timer != 0)
        n = schedule_cancel(actor->context, cancel.timer, by);
    else if (to)
        n = schedule_cancel_type(to, type, cancel.type_size, by);
    return answer_value(actor->inbox.endpoint, cancel.cookie, n);
}

/* ---- pause ---- */

/* A worker may pause its own pool, and the exchanges that it has made. */
static bool may_pause(const struct actor *owner, const struct actor *actor)
{
    if (!owner || actor == owner)
        return true;
    if (actor_exchange(actor))
        return actor_exchange(actor)->creator == owner->reference;
    return actor_pool_of(actor) && actor_pool_of(actor) == actor_pool_of(owner);
}

static int on_pause(struct actor *actor, const struct ring_record *record)
{
    struct protocol_by_reference by;
    struct actor *which;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    which = actor_get(&actor->context->actors, by.reference);
    if (!which)
        return answer_refuse(actor->inbox.endpoint, by.cookie, ENOENT, "no such actor");
    which = actor_self(which);
    if (!may_pause(actor_request_owner(actor), which))
        return answer_refuse(actor->inbox.endpoint, by.cookie, EPERM,
                             "it belongs neither to this cell nor to this worker");
    if (record->kind == PROTOCOL_PAUSE)
        delivery_pause(which);
    else
        delivery_resume(which);
    return answer_value(actor->inbox.endpoint, by.cookie, 1);
}

/* ---- all of them ---- */

static const struct {
    uint16_t kind;
    bool changes;
    int (*fn)(struct actor *actor, const struct ring_record *record);
} REQUESTS[] = {
    {PROTOCOL_FIND, false, on_find},
    {PROTOCOL_MONITOR, false, on_monitor},
    {PROTOCOL_UNMONITOR, false, on_unmonitor},
    {PROTOCOL_TIMER, true, on_timer},
    {PROTOCOL_TIMER_CANCEL, true, on_timer_cancel},
    {PROTOCOL_SUBSCRIBE, true, actor_request_on_subscription},
    {PROTOCOL_UNSUBSCRIBE, true, actor_request_on_subscription},
    {PROTOCOL_REGISTER, true, on_register},
    {PROTOCOL_DEREGISTER, true, on_deregister},
    {PROTOCOL_EXCHANGE, true, actor_request_on_exchange},
    {PROTOCOL_EXCHANGE_DELETE, true, actor_request_on_exchange_delete},
    {PROTOCOL_PAUSE, true, on_pause},
    {PROTOCOL_RESUME, true, on_pause},
};

int actor_request_on_request(struct actor *actor, const struct ring_record *record)
{
    uint64_t cookie;
    void *room;
    int r;

    for (size_t i = 0; i < sizeof(REQUESTS) / sizeof(REQUESTS[0]); i++) {
        if (REQUESTS[i].kind != record->kind)
            continue;
        /* All begin with their cookie. */
        if (record->size < sizeof(cookie))
            return -EBADMSG;
        r = endpoint_reserve(actor->inbox.endpoint, PROTOCOL_BODY_MAX, &room);
        actor->inbox.full = actor->inbox.full || r == ENDPOINT_E_FULL;
        if (actor->inbox.owed)
            actor_wake(actor);
        actor->inbox.owed = r == ENDPOINT_E_FULL;
        if (r != 0)
            return r;
        memcpy(&cookie, record->body, sizeof(cookie));
        if (REQUESTS[i].changes && actor->restricted)
            return answer_refuse(actor->inbox.endpoint, cookie, EPERM, "not permitted");
        return REQUESTS[i].fn(actor, record);
    }
    return -EBADMSG;
}
