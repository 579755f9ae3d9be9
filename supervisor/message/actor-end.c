/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-end.h"

#include "supervisor/message/actor-name.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How many messages a turn rejects: one or two microseconds each. */
#define REJECTED_PER_TURN 2048u

/* The messages that an ended actor has left. */
struct ended_mailbox {
    struct list link;
    struct list messages;
    uint64_t reference;
    char *name, *cause;
};

static struct ended_mailbox *ended_mailbox_free(struct ended_mailbox *ended)
{
    if (ended) {
        free(ended->name);
        free(ended->cause);
        free(ended);
    }
    return NULL;
}

/* Rejects up to `max` messages, and frees the mailbox with the last one. Returns how many. */
static size_t reject_some(struct message_context *context, struct ended_mailbox *ended, size_t max)
{
    const struct undeliverable why = {
        .reason = DEAD_GONE, .error = ENOENT, .text = ended->cause, .name = ended->name};
    struct list *node;
    size_t n = 0;

    for (; n < max && (node = list_first(&ended->messages)); n++) {
        struct envelope *envelope = list_entry(node, struct envelope, link);

        list_unlink(node);
        envelope->place = ENVELOPE_NOWHERE;
        envelope->to = ended->reference;
        undeliverable_end(context, envelope, NULL, &why);
    }
    if (list_empty(&ended->messages)) {
        list_unlink(&ended->link);
        (void)ended_mailbox_free(ended);
    }
    return n;
}

static void on_reject(struct loop_deferred *deferred)
{
    struct message_context *context = list_entry(deferred, struct message_context, reject);
    struct list *node;

    for (size_t left = REJECTED_PER_TURN;
         left > 0 && (node = list_first(&context->ended_mailboxes));)
        left -= reject_some(context, list_entry(node, struct ended_mailbox, link), left);
    if (!list_empty(&context->ended_mailboxes))
        loop_defer(context->loop, &context->reject);
}

void actor_ends_init(struct message_context *context)
{
    list_init(&context->ended_mailboxes);
    loop_deferred_init(&context->reject, on_reject);
}

void actor_ends_settle(struct message_context *context)
{
    loop_undefer(&context->reject);
    while (!list_empty(&context->ended_mailboxes))
        on_reject(&context->reject);
    loop_undefer(&context->reject);
}

/* Leaves the messages for later turns. Returns false without memory. */
static bool put_off(struct actor *actor, const char *cause)
{
    struct message_context *context = actor->context;
    struct ended_mailbox *ended = calloc(1, sizeof(*ended));

    if (ended) {
        ended->name = strdup(actor->name);
        ended->cause = strdup(cause);
    }
    if (!ended || !ended->name || !ended->cause) {
        (void)ended_mailbox_free(ended);
        return false;
    }
    ended->reference = actor->reference;
    list_init(&ended->messages);
    list_append(&ended->messages, &actor->mailbox.messages);
    list_init(&actor->mailbox.messages);
    actor->mailbox.n = actor->mailbox.bytes = 0;
    list_push_back(&context->ended_mailboxes, &ended->link);
    loop_defer(context->loop, &context->reject);
    return true;
}

static void reject_messages(struct actor *actor, const char *cause)
{
    const struct undeliverable why = {.reason = DEAD_GONE, .error = ENOENT, .text = cause};
    struct envelope *envelope;

    if (actor->mailbox.n > REJECTED_PER_TURN && actor->log == 0 && put_off(actor, cause))
        return;
    while ((envelope = mailbox_oldest(&actor->mailbox))) {
        mailbox_take(&actor->mailbox, envelope);
        actor->counters.dead++;
        undeliverable_end(actor->context, envelope, actor, &why);
    }
}

void actor_end(struct actor *actor, const char *cause)
{
    delivery_recover(actor, NULL);
    reject_messages(actor, cause);
    monitor_notify(actor, cause);
    actor_deregister_all(actor);
    exchange_forget(&actor->subscriptions);
    schedule_forget(actor);
    actor_release_place(actor);
    actor_unblock_all(actor);
    actor_free(actor);
}
