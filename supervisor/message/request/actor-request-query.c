/* SPDX-License-Identifier: MIT */

/* The requests of actors: names, monitors, timers, pauses, subscriptions and exchanges. */

#include "shared/base/cleanup.h"
#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include "supervisor/message/request/actor-request-private.h"
#include "supervisor/message/schedule/schedule.h"
#include <errno.h>
#include <string.h>

/* A request in the supervisor's own memory; its names are terminated. */
struct actor_request {
    uint16_t kind;
    union {
        uint64_t cookie; /* every request begins with it */
        struct protocol_named named;
        struct protocol_by_reference by_reference;
        struct protocol_timer timer; /* its content is still in the ring */
        struct protocol_timer_cancel timer_cancel;
        struct protocol_subscription subscription;
        struct protocol_exchange exchange;
    };
};

/*
 * The answer to a request: `value`, or a refusal with `error` (a positive errno) and `reason`.
 * -ENOMEM and -EMFILE are also refusals, with the text of the errno; any other negative `error` is
 * a violation of the protocol.
 */
struct actor_answer {
    int error;
    const char *reason;
    uint64_t value;
};
#define ANSWER_VALUE(v)     ((struct actor_answer){.value = (v)})
#define ANSWER_ERROR(r)     ((struct actor_answer){.error = (r)})
#define ANSWER_REFUSE(e, r) ((struct actor_answer){.error = (e), .reason = (r)})
/* Values of `error`: the request is read again, in the next turn or when its blob has come. */
#define ANSWER_IN_PARTS   INT_MAX
#define ANSWER_AFTER_BLOB (INT_MAX - 1)

/* The actor whose rights count; NULL = it may change everything, like a client. */
static struct actor *owner_of(struct actor *actor)
{
    return actor_is(actor, ACTOR_CLIENT) ? NULL : actor_self(actor);
}

/* ---- names ---- */

static struct actor_answer on_find(struct actor *actor, const struct actor_request *request)
{
    const struct actor *to = request->named.name[0] == '\0'
                                 ? actor_self(actor)
                                 : actor_by_address(actor->context, request->named.name);

    return to ? ANSWER_VALUE(to->reference)
              : ANSWER_REFUSE(ENOENT, "no such group, exchange or name");
}

/* The answer to ACTOR_E_* or -errno. */
static struct actor_answer refuse_name(int r)
{
    static const struct actor_answer REFUSALS[] = {
        [ACTOR_E_EXISTS] = {EEXIST, "a group, an exchange or an actor has that name", 0},
        [ACTOR_E_BAD_NAME] = {EINVAL, "malformed name: " ACTOR_NAME_RULE, 0},
        [ACTOR_E_TOO_MANY] = {EBUSY, "too many names or exchanges, of its own or its group's", 0},
    };

    return r < 0 ? ANSWER_ERROR(r) : REFUSALS[r];
}

static struct actor_answer on_register(struct actor *actor, const struct actor_request *request)
{
    int r = actor_register(actor_self(actor), request->named.name);

    return r == 0 ? ANSWER_VALUE(1) : refuse_name(r);
}

static struct actor_answer on_deregister(struct actor *actor, const struct actor_request *request)
{
    const bool valid = actor_name_valid(request->named.name, request->named.name_size);
    const bool had = valid && actor_deregister(actor_self(actor), request->named.name);

    if (!had)
        actor_log(actor, LOG_LEVEL_WARNING, "deregisters a name that it does not have: %s",
                  valid ? request->named.name : "(malformed)");
    return ANSWER_VALUE(had);
}

/* ---- monitors ---- */

static struct actor_answer on_monitor(struct actor *actor, const struct actor_request *request)
{
    int r = monitor_add(actor, request->by_reference.reference);

    return r == MONITOR_E_TOO_MANY ? ANSWER_REFUSE(EBUSY, "too many monitors") : ANSWER_ERROR(r);
}

static struct actor_answer on_unmonitor(struct actor *actor, const struct actor_request *request)
{
    return ANSWER_VALUE(monitor_remove(actor, request->by_reference.reference));
}

/* ---- timers ---- */

static struct actor_answer set_timer(struct actor *actor, const struct protocol_timer *timer,
                                     struct envelope *envelope)
{
    const struct schedule_options options = {
        .to = actor_get(actor->context, timer->to),
        .sender = actor_self(actor)->reference,
        .at = timer->at,
        .period = timer->period,
        .realtime = timer->flags & PROTOCOL_TIMER_REALTIME,
        .topic = &envelope->topic,
        .payload = &envelope->payload,
    };
    struct actor_answer answer = {0};

    if (!options.to)
        return ANSWER_REFUSE(ENOENT, "its recipient is gone");
    if (timer->period > 0 && timer->period < SCHEDULE_PERIOD_MIN)
        return ANSWER_REFUSE(EINVAL, "period: 0, or 1ms and more");
    answer.error = schedule_add(actor->context, &options, &answer.value);
    if (answer.error == SCHEDULE_E_SHARE)
        return ANSWER_REFUSE(
            EBUSY, "too many timers of its own: at most 100000, with 64 MiB of messages, and "
                   "10000 messages a second");
    if (answer.error == SCHEDULE_E_TOO_MANY)
        return ANSWER_REFUSE(
            EBUSY, "too many timers: at most 1000000 in all, with 512 MiB of messages, and "
                   "50000 messages a second; a group gets no more than remains for others");
    return answer;
}

static struct actor_answer on_timer(struct actor *actor, const struct actor_request *request)
{
    struct actor_answer answer;
    struct envelope *envelope;
    int r =
        actor_request_take_envelope(actor, PROTOCOL_MESSAGE, &request->timer.content, &envelope);

    if (r != 0)
        return ANSWER_ERROR(r == ENDPOINT_E_BLOB ? ANSWER_AFTER_BLOB : r);
    answer = set_timer(actor, &request->timer, envelope);
    envelope_free(envelope);
    return answer;
}

/* Timers that one request cancels per turn. */
#define CANCELLED_PER_TURN 256u

/* Cancels in parts: the request is read again in the next turn until no timer is left. */
static struct actor_answer on_timer_cancel(struct actor *actor, const struct actor_request *request)
{
    const struct protocol_timer_cancel *cancel = &request->timer_cancel;
    const struct actor *by = owner_of(actor);
    struct actor *to = actor_get(actor->context, cancel->to);
    unsigned n = 0;

    if (cancel->timer != 0)
        return ANSWER_VALUE(schedule_cancel(actor->context, cancel->timer, by));
    if (to)
        n = schedule_cancel_type(to, cancel->type, cancel->type_size, by, CANCELLED_PER_TURN);
    actor->inbox.n_cancelled += n;
    if (n == CANCELLED_PER_TURN)
        return ANSWER_ERROR(ANSWER_IN_PARTS);
    n = actor->inbox.n_cancelled;
    actor->inbox.n_cancelled = 0;
    return ANSWER_VALUE(n);
}

/* ---- pause ---- */

/* A worker may pause its own pool, and the exchanges that it has created. */
static bool may_pause(const struct actor *owner, const struct actor *actor)
{
    if (!owner || actor == owner)
        return true;
    if (actor_exchange(actor))
        return actor_exchange(actor)->creator == owner->reference;
    return actor_pool_of(actor) && actor_pool_of(actor) == actor_pool_of(owner);
}

static struct actor_answer on_pause(struct actor *actor, const struct actor_request *request)
{
    struct actor *which = actor_get(actor->context, request->by_reference.reference);

    if (!which)
        return ANSWER_REFUSE(ENOENT, "no such actor");
    which = actor_self(which);
    if (!may_pause(owner_of(actor), which))
        return ANSWER_REFUSE(EPERM, "it belongs neither to this cell nor to this worker");
    if (request->kind == PROTOCOL_PAUSE)
        delivery_pause(which);
    else
        delivery_resume(which);
    return ANSWER_VALUE(1);
}

/* ---- exchanges and subscriptions ---- */

static struct exchange *find_exchange(const struct actor *actor, uint64_t reference)
{
    const struct actor *found = actor_get(actor->context, reference);

    return found ? actor_exchange(found) : NULL;
}

static struct actor_answer subscribe(struct actor *exchange, struct actor *subscriber,
                                     const struct topic *topic)
{
    int r = exchange_actor_admit(exchange, subscriber);

    if (r == EXCHANGE_ACTOR_E_FOREIGN)
        return ANSWER_REFUSE(EPERM, "this group may not subscribe to the exchange: MaySubscribe= "
                                    "in its file does not name it");
    if (r == 0)
        r = exchange_subscribe(actor_exchange(exchange), &subscriber->subscriptions, topic);
    if (r == EXCHANGE_E_FULL)
        return ANSWER_REFUSE(EBUSY, "the exchange has too many subscriptions");
    return r < 0 ? ANSWER_ERROR(r) : ANSWER_VALUE(1);
}

static struct actor_answer on_subscription(struct actor *actor, const struct actor_request *request)
{
    struct exchange *exchange = find_exchange(actor, request->subscription.exchange);
    struct exchange_subscriber *subscriber = &actor_self(actor)->subscriptions;
    const struct topic *topic = &request->subscription.topic;

    if (!topic_type_valid(topic->type, topic->type_size))
        return ANSWER_REFUSE(EINVAL, "malformed type: at most 128 characters of A-Z a-z 0-9 . _ -");
    if (!exchange)
        return ANSWER_REFUSE(ENOENT, "no such exchange");
    if (request->kind == PROTOCOL_UNSUBSCRIBE)
        return ANSWER_VALUE(exchange_unsubscribe(exchange, subscriber, topic));
    return subscribe(actor_get(actor->context, request->subscription.exchange), actor_self(actor),
                     topic);
}

static struct actor_answer on_exchange(struct actor *actor, const struct actor_request *request)
{
    struct actor *exchange;
    int r = exchange_actor_make(&exchange, actor_self(actor), request->exchange.name,
                                request->exchange.type);

    if (r != 0)
        return refuse_name(r);
    return ANSWER_VALUE(exchange->reference);
}

static struct actor_answer on_exchange_delete(struct actor *actor,
                                              const struct actor_request *request)
{
    const struct actor *owner = owner_of(actor);
    const struct exchange *exchange = find_exchange(actor, request->by_reference.reference);

    if (!exchange)
        return ANSWER_REFUSE(ENOENT, "no such exchange");
    if (exchange->declared)
        return ANSWER_REFUSE(EPERM, "a file declares it: remove the file, and reload");
    if (owner && exchange->creator != owner->reference)
        return ANSWER_REFUSE(EPERM, "another actor created it");
    /* All messages that wait for it become dead letters. */
    endpoint_end_batch(actor->inbox.endpoint);
    actor_end(actor_get(actor->context, request->by_reference.reference), "it was deleted");
    return ANSWER_VALUE(1);
}

/* ---- reading requests ---- */

#define GET(record_name)                                                                           \
    static int get_##record_name(const struct ring_record *record, struct actor_request *ret)      \
    {                                                                                              \
        return protocol_get_##record_name(record->body, record->size, &ret->record_name);          \
    }

GET(named)
GET(by_reference)
GET(timer)
GET(timer_cancel)
GET(subscription)
GET(exchange)

/* Room for names and topics in addition to numbers. */
#define COPIED_MAX 512u

static const struct request_kind {
    uint16_t kind;
    bool changes; /* refused to a restricted client */
    int (*get)(const struct ring_record *record, struct actor_request *ret);
    struct actor_answer (*fn)(struct actor *actor, const struct actor_request *request);
} KINDS[] = {
    {PROTOCOL_FIND, false, get_named, on_find},
    {PROTOCOL_MONITOR, false, get_by_reference, on_monitor},
    {PROTOCOL_UNMONITOR, false, get_by_reference, on_unmonitor},
    {PROTOCOL_TIMER, true, get_timer, on_timer},
    {PROTOCOL_TIMER_CANCEL, true, get_timer_cancel, on_timer_cancel},
    {PROTOCOL_SUBSCRIBE, true, get_subscription, on_subscription},
    {PROTOCOL_UNSUBSCRIBE, true, get_subscription, on_subscription},
    {PROTOCOL_REGISTER, true, get_named, on_register},
    {PROTOCOL_DEREGISTER, true, get_named, on_deregister},
    {PROTOCOL_EXCHANGE, true, get_exchange, on_exchange},
    {PROTOCOL_EXCHANGE_DELETE, true, get_by_reference, on_exchange_delete},
    {PROTOCOL_PAUSE, true, get_by_reference, on_pause},
    {PROTOCOL_RESUME, true, get_by_reference, on_pause},
};

/* ---- answering ---- */

/* Makes sure that any answer fits. Returns 0, ENDPOINT_E_FULL or -errno. */
static int reserve_answer(struct actor *actor)
{
    struct inbox *inbox = &actor->inbox;
    void *room;
    int r = endpoint_reserve(inbox->endpoint, PROTOCOL_BODY_MAX, &room);

    inbox->full = inbox->full || r == ENDPOINT_E_FULL;
    if (inbox->owed)
        actor_wake(actor);
    inbox->owed = r == ENDPOINT_E_FULL;
    return r;
}

static int send_answer(struct actor *actor, const struct actor_request *request,
                       struct actor_answer answer)
{
    uint8_t body[sizeof(struct protocol_found)];
    int size;

    if (answer.error == ANSWER_IN_PARTS)
        return ENDPOINT_E_MORE;
    if (answer.error == ANSWER_AFTER_BLOB)
        return ENDPOINT_E_BLOB;
    if (answer.error < 0 && actor_request_forgive(answer.error) < 0)
        return answer.error;
    if (answer.error < 0)
        answer = ANSWER_REFUSE(-answer.error, strerror(-answer.error));
    if (answer.error > 0) {
        delivery_refuse(actor, request->cookie, answer.error, answer.reason);
    } else if (request->kind == PROTOCOL_FIND) {
        size = protocol_put_found(
            body, sizeof(body),
            &(struct protocol_found){.cookie = request->cookie, .group = answer.value});
        delivery_answer(actor, PROTOCOL_FOUND, body, (uint32_t)size);
    } else {
        size = protocol_put_answer(
            body, sizeof(body),
            &(struct protocol_answer){.cookie = request->cookie, .value = answer.value});
        delivery_answer(actor, PROTOCOL_ANSWER, body, (uint32_t)size);
    }
    return 0;
}

int actor_request_on_request(struct actor *actor, const struct ring_record *record)
{
    struct actor_request request = {.kind = record->kind};
    const struct request_kind *kind = KINDS;
    uint8_t body[COPIED_MAX + 1] = {0};
    struct ring_record copy = *record;
    int r;

    while (kind->kind != record->kind)
        if (++kind == KINDS + ELEMENTS(KINDS))
            return -EBADMSG;
    /* Copied, so that the sender can no longer change it. */
    if (record->kind != PROTOCOL_TIMER && record->size <= COPIED_MAX)
        copy.body = memcpy(body, record->body, record->size);
    else if (record->kind != PROTOCOL_TIMER)
        return -EBADMSG;
    r = kind->get(&copy, &request);
    if (r == 0)
        r = reserve_answer(actor);
    if (r != 0)
        return r;
    return send_answer(actor, &request,
                       kind->changes && actor->restricted ? ANSWER_REFUSE(EPERM, "not permitted")
                                                          : kind->fn(actor, &request));
}
