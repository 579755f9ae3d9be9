/* SPDX-License-Identifier: MIT */

/* How messages and actors end. */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/channel/endpoint.h"
#include "supervisor/context.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/message-log.h"
#include "supervisor/message/monitor.h"
#include "supervisor/message/router.h"
#include "supervisor/message/schedule.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/pool/slot.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- messages ---- */

/* Events of messages' ends in one second: a flood of those is to leave room for others. */
#define ANNOUNCED_MAX 50u

static void announce(struct context *context, const struct envelope *envelope,
                     const char *recipient, const struct router_verdict *verdict)
{
    const bool error = dead_letter_queue_of(verdict->reason) == DEAD_ERRORS;
    char message[512];

    (void)snprintf(message, sizeof(message), "message %llu for %s, type '%.*s': %s%s%s",
                   (unsigned long long)envelope->id, recipient, (int)envelope->topic.type_size,
                   envelope->topic.type, dead_letter_reason_to_string(verdict->reason),
                   verdict->text ? ": " : "", verdict->text ? verdict->text : "");
    event_emit(&context->events, (struct event){
                                     .level = error ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
                                     .type = error ? "letter.error" : "letter.dead",
                                     .message = message,
                                 });
}

void router_undeliverable(struct context *context, struct envelope *envelope,
                          const struct actor *recipient, const struct router_verdict *verdict)
{
    const char *name = recipient ? recipient->name : actor_name_of(&context->actors, envelope->to);
    const char *sender = actor_name_of(&context->actors, envelope->sender);
    const struct dead_letter_facts facts = {
        .reason = verdict->reason,
        .sender = sender[0] != '\0' ? sender : NULL,
        .recipient = name,
        .sender_ref = envelope->sender,
        .recipient_ref = recipient ? recipient->reference : envelope->to,
        .topic = envelope->topic,
        .message = envelope->id,
        .sent_at = envelope->sent_at,
        .code = verdict->code,
        .text = verdict->text,
        .attempts = envelope->attempt,
        .deaths = verdict->deaths,
        .n_deaths = verdict->n_deaths,
    };
    const uint64_t ask = envelope->kind == PROTOCOL_MESSAGE ? envelope->ask : 0;

    if (recipient && (recipient->log & ACTOR_LOG_UNHANDLED))
        message_log(recipient, ACTOR_LOG_UNHANDLED,
                    &(struct message_log_entry){
                        .id = envelope->id,
                        .sender = envelope->sender,
                        .topic = &envelope->topic,
                        .text = verdict->text ? verdict->text
                                              : dead_letter_reason_to_string(verdict->reason)});
    if (rate_take(&context->actors.told, loop_now(context->loop), ANNOUNCED_MAX, NULL))
        announce(context, envelope, name, verdict);
    (void)dead_letter_add(&context->dead_letters, &facts, &envelope->payload);
    envelope_free(envelope);
    if (ask != 0)
        ask_envelope_died(context, ask, verdict->error,
                          verdict->text ? verdict->text
                                        : dead_letter_reason_to_string(verdict->reason));
}

/* ---- actors ---- */

static void drop_all(struct actor *actor, struct list *list, const char *cause)
{
    const struct router_verdict verdict = {.reason = DEAD_GONE, .error = ENOENT, .text = cause};
    struct list *node;

    while ((node = list_first(list))) {
        struct envelope *envelope = list_entry(node, struct envelope, link);
        mailbox_take(&actor->mailbox, envelope);
        actor->counters.dead++;
        router_undeliverable(actor->context, envelope, actor, &verdict);
    }
}

static void release_blocked(struct actor *actor)
{
    struct list *node;

    while ((node = list_first(&actor->blocked))) {
        struct actor *sender = list_entry(node, struct actor, blocked_link);
        list_unlink(node);
        endpoint_resume(sender->endpoint);
    }
}

void router_remove(struct actor *actor, const char *cause)
{
    struct list *node;

    delivery_recover(actor, NULL);
    drop_all(actor, &actor->mailbox.messages, cause);
    monitor_notify(actor, cause);
    while ((node = list_first(&actor->names))) {
        struct actor_name *name = list_entry(node, struct actor_name, link);
        (void)actor_deregister(actor, name->name);
    }
    exchange_forget(&actor->subscriptions);
    schedule_forget(actor);
    stand_in_release(actor);
    release_blocked(actor);
    if (actor->kind == ACTOR_EXCHANGE && actor->exchange) {
        exchange_deinit(actor->exchange);
        free(actor->exchange);
        actor->context->actors.n_exchanges--;
    }
    actor_free(actor);
}

int router_add_exchange(struct context *context, const char *name, enum exchange_kind kind,
                        struct actor **ret)
{
    struct actor *actor;
    int r;

    if (context->actors.n_exchanges >= ACTOR_EXCHANGES_MAX)
        return ACTOR_E_TOO_MANY;
    r = actor_new(&actor, context, ACTOR_EXCHANGE, name);
    if (r < 0)
        return r;
    actor->exchange = calloc(1, sizeof(*actor->exchange));
    r = actor->exchange ? actor_register(actor, name) : -ENOMEM;
    if (actor->exchange) {
        exchange_init(actor->exchange, kind);
        context->actors.n_exchanges++;
    }
    if (r != 0) {
        router_remove(actor, "it was never there");
        return r;
    }
    *ret = actor;
    return 0;
}

/* ---- addresses ---- */

static struct actor *find_in_groups(struct context *context, const char *address)
{
    struct registry_target target;

    if (registry_resolve(&context->registry, address, &target) < 0)
        return NULL;
    if (target.slot)
        return target.slot->actor;
    if (target.cell)
        return target.cell->pool.actor;
    return target.group->cell ? target.group->cell->pool.actor : target.group->actor;
}

int router_find(struct context *context, const char *address, uint64_t *ret)
{
    struct actor *actor = find_in_groups(context, address);

    if (!actor)
        actor = actor_by_name(&context->actors, address);
    if (!actor)
        return ROUTER_E_GONE;
    *ret = actor->reference;
    return 0;
}
