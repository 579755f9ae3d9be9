/* SPDX-License-Identifier: MIT */
#include "../shared/log.h"
#include "../shared/protocol-actors.h"
#include "context.h"
#include "delivery.h"
#include "exchange.h"
#include "router.h"
#include "schedule.h"
#include "talk-private.h"
#include "watch.h"
#include <errno.h>
#include <string.h>

/* ---- answers; room for one is there before anything is done ---- */

static int answer(struct actor *actor, uint64_t cookie, uint64_t value)
{
    const struct protocol_answer record = {.cookie = cookie, .value = value};
    void *body;
    int r;

    r = mailbox_reserve(actor->mailbox, sizeof(record), &body);
    if (r != 0)
        return r;
    mailbox_commit(actor->mailbox, PROTOCOL_ANSWER,
                   (uint32_t)protocol_put_answer(body, sizeof(record), &record));
    return 0;
}

static int refuse(struct actor *actor, uint64_t cookie, int error, const char *reason)
{
    const struct protocol_refused record = {.cookie = cookie,
                                            .error = (uint32_t)error,
                                            .reason = reason,
                                            .reason_size = (uint32_t)strlen(reason)};
    void *body;
    int r;

    r = mailbox_reserve(actor->mailbox, PROTOCOL_BODY_MAX, &body);
    if (r != 0)
        return r;
    mailbox_commit(actor->mailbox, PROTOCOL_REFUSED,
                   (uint32_t)protocol_put_refused(body, PROTOCOL_BODY_MAX, &record));
    return 0;
}

static int refuse_errno(struct actor *actor, uint64_t cookie, int r)
{
    return refuse(actor, cookie, -r, strerror(-r));
}

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
    struct protocol_named named;
    struct protocol_found found;
    void *body;
    int r;

    r = take_name(record, &named, name);
    if (r < 0)
        return r;
    found.cookie = named.cookie;
    found.group = actor_self(actor)->reference; /* by no name at all one finds oneself */
    r = *name == '\0' ? 0 : router_find(actor->context, name, &found.group);
    if (r != 0)
        return refuse(actor, named.cookie, ENOENT, "no such group, exchange or name");
    r = mailbox_reserve(actor->mailbox, sizeof(found), &body);
    if (r != 0)
        return r;
    mailbox_commit(actor->mailbox, PROTOCOL_FOUND,
                   (uint32_t)protocol_put_found(body, sizeof(found), &found));
    return 0;
}

static int refuse_name(struct actor *actor, uint64_t cookie, int r)
{
    switch (r) {
    case ACTOR_E_EXISTS:
        return refuse(actor, cookie, EEXIST, "a group, an exchange or an actor has that name");
    case ACTOR_E_BAD_NAME:
        return refuse(actor, cookie, EINVAL,
                      "malformed name: 1 to 255 characters of A-Z a-z 0-9 . _ : -, the first a "
                      "letter or digit");
    case ACTOR_E_TOO_MANY:
        return refuse(actor, cookie, EBUSY, "too many names, or exchanges");
    default:
        return refuse_errno(actor, cookie, r);
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
    return r == 0 ? answer(actor, named.cookie, 1) : refuse_name(actor, named.cookie, r);
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
        log_warning("%s: deregisters a name that it has not: %s", actor->name,
                    valid ? name : "(malformed)");
    return answer(actor, named.cookie, had);
}

/* ---- watches ---- */

static int on_watch(struct actor *actor, const struct ring_record *record)
{
    struct protocol_by_reference by;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    r = watch_add(actor, by.reference);
    if (r < 0)
        return refuse_errno(actor, by.cookie, r);
    if (r != 0)
        return refuse(actor, by.cookie, EBUSY, "too many watches");
    return answer(actor, by.cookie, 0);
}

static int on_unwatch(struct actor *actor, const struct ring_record *record)
{
    struct protocol_by_reference by;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    return answer(actor, by.cookie, watch_remove(actor, by.reference));
}

/* ---- timers ---- */

static int set_timer(struct actor *actor, const struct protocol_timer *timer, struct letter *letter)
{
    struct context *context = actor->context;
    const struct schedule_options options = {
        .to = actor_get(&context->actors, timer->to),
        .sender = actor_self(actor)->reference,
        .at = timer->at,
        .period = timer->period,
        .realtime = timer->flags & PROTOCOL_TIMER_REALTIME,
        .topic = &letter->topic,
        .payload = &letter->payload,
    };
    uint64_t id;
    int r;

    if (!options.to)
        return refuse(actor, timer->cookie, ENOENT, "its recipient is gone");
    if (timer->period > 0 && timer->period < SCHEDULE_PERIOD_MIN)
        return refuse(actor, timer->cookie, EINVAL, "period: 0, or 1ms and more");
    r = schedule_add(context, &options, &id);
    if (r < 0)
        return refuse_errno(actor, timer->cookie, r);
    if (r != 0)
        return refuse(actor, timer->cookie, EBUSY, "too many timers");
    return answer(actor, timer->cookie, id);
}

static int on_timer(struct actor *actor, const struct ring_record *record)
{
    struct protocol_timer timer;
    struct letter *letter;
    int r;

    r = protocol_get_timer(record->body, record->size, &timer);
    if (r < 0)
        return r;
    r = talk_take_letter(actor, PROTOCOL_MESSAGE, &timer.content, &letter);
    if (r == -ENOMEM || r == -EMFILE)
        return refuse_errno(actor, timer.cookie, r);
    if (r < 0)
        return r;
    r = set_timer(actor, &timer, letter);
    letter_free(letter);
    return r;
}

static int on_timer_cancel(struct actor *actor, const struct ring_record *record)
{
    struct protocol_timer_cancel cancel;
    char type[TOPIC_TYPE_MAX];
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
        n = schedule_cancel(actor->context, cancel.timer);
    else if (to)
        n = schedule_cancel_type(to, type, cancel.type_size);
    return answer(actor, cancel.cookie, n);
}

/* ---- exchanges ---- */

static int on_subscription(struct actor *actor, const struct ring_record *record)
{
    char type[TOPIC_TYPE_MAX], key[TOPIC_KEY_MAX];
    struct protocol_subscription wish;
    struct actor *exchange, *self = actor_self(actor);
    int r;

    r = protocol_get_subscription(record->body, record->size, &wish);
    if (r < 0)
        return r;
    if (wish.topic.type_size > 0)
        memcpy(type, wish.topic.type, wish.topic.type_size);
    if (wish.topic.key_size > 0)
        memcpy(key, wish.topic.key, wish.topic.key_size);
    wish.topic.type = type;
    if (wish.topic.key)
        wish.topic.key = key;
    exchange = actor_get(&actor->context->actors, wish.exchange);
    if (!topic_type_valid(type, wish.topic.type_size))
        return refuse(actor, wish.cookie, EINVAL,
                      "malformed type: at most 128 characters of A-Z a-z 0-9 . _ -");
    if (!exchange || exchange->kind != ACTOR_EXCHANGE)
        return refuse(actor, wish.cookie, ENOENT, "no such exchange");
    if (record->kind == PROTOCOL_UNSUBSCRIBE)
        return answer(actor, wish.cookie,
                      exchange_unsubscribe(exchange->exchange, &self->subscriptions, &wish.topic));
    r = exchange_subscribe(exchange->exchange, &self->subscriptions, &wish.topic);
    if (r < 0)
        return refuse_errno(actor, wish.cookie, r);
    if (r != 0)
        return refuse(actor, wish.cookie, EBUSY, "the exchange has too many subscriptions");
    return answer(actor, wish.cookie, 1);
}

static int on_exchange(struct actor *actor, const struct ring_record *record)
{
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    struct protocol_exchange wish;
    struct actor *exchange;
    int r;

    r = protocol_get_exchange(record->body, record->size, &wish);
    if (r < 0)
        return r;
    memcpy(name, wish.name, wish.name_size);
    name[wish.name_size] = '\0';
    r = router_add_exchange(actor->context, name, (enum exchange_kind)wish.type, wish.wildcards,
                            &exchange);
    return r == 0 ? answer(actor, wish.cookie, exchange->reference)
                  : refuse_name(actor, wish.cookie, r);
}

static int on_exchange_delete(struct actor *actor, const struct ring_record *record)
{
    struct protocol_by_reference by;
    struct actor *exchange;
    int r;

    r = protocol_get_by_reference(record->body, record->size, &by);
    if (r < 0)
        return r;
    exchange = actor_get(&actor->context->actors, by.reference);
    if (!exchange || exchange->kind != ACTOR_EXCHANGE)
        return refuse(actor, by.cookie, ENOENT, "no such exchange");
    if (exchange->exchange_declared)
        return refuse(actor, by.cookie, EPERM, "a file declares it: remove that, and reload");
    router_remove(exchange, "it was deleted");
    return answer(actor, by.cookie, 1);
}

/* ---- all of them ---- */

static const struct {
    uint16_t kind;
    bool changes;
    int (*fn)(struct actor *actor, const struct ring_record *record);
} REQUESTS[] = {
    {PROTOCOL_FIND, false, on_find},
    {PROTOCOL_WATCH_ACTOR, false, on_watch},
    {PROTOCOL_UNWATCH, false, on_unwatch},
    {PROTOCOL_TIMER, true, on_timer},
    {PROTOCOL_TIMER_CANCEL, true, on_timer_cancel},
    {PROTOCOL_SUBSCRIBE, true, on_subscription},
    {PROTOCOL_UNSUBSCRIBE, true, on_subscription},
    {PROTOCOL_REGISTER, true, on_register},
    {PROTOCOL_DEREGISTER, true, on_deregister},
    {PROTOCOL_EXCHANGE, true, on_exchange},
    {PROTOCOL_EXCHANGE_DELETE, true, on_exchange_delete},
};

int talk_on_request(struct actor *actor, const struct ring_record *record, bool permitted)
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
        r = mailbox_reserve(actor->mailbox, PROTOCOL_BODY_MAX, &room);
        actor->full = actor->full || r == MAILBOX_E_FULL;
        if (actor->owes)
            delivery_wake(actor);
        actor->owes = r == MAILBOX_E_FULL;
        if (r != 0)
            return r;
        memcpy(&cookie, record->body, sizeof(cookie));
        if (REQUESTS[i].changes && !permitted)
            return refuse(actor, cookie, EPERM, "not permitted");
        return REQUESTS[i].fn(actor, record);
    }
    return -EBADMSG;
}
