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

/* The messages that an ended actor has left. */
struct ended_mailbox {
    struct remains remains;
    struct list messages;
    uint64_t reference;
    char *name, *cause;
};

static void ended_mailbox_free(struct ended_mailbox *ended)
{
    free(ended->name);
    free(ended->cause);
    free(ended);
}

static size_t reject_some(struct message_context *context, struct remains *remains, size_t max)
{
    struct ended_mailbox *ended = list_entry(remains, struct ended_mailbox, remains);
    const struct undeliverable why = {
        .reason = DEAD_GONE, .error = ENOENT, .text = ended->cause, .name = ended->name};
    struct list *node;
    size_t n = 0;

    for (; n < max && (node = list_first(&ended->messages)); n++) {
        struct envelope *envelope = list_entry(node, struct envelope, link);

        list_unlink(node);
        envelope->place = ENVELOPE_NOWHERE;
        envelope->share = NULL;
        envelope->to = ended->reference;
        undeliverable_end(context, envelope, NULL, &why);
    }
    if (list_empty(&ended->messages)) {
        list_unlink(&remains->link);
        ended_mailbox_free(ended);
    }
    return n;
}

/* Leaves the messages for later turns. Returns false without memory. */
static bool put_off(struct actor *actor, const char *cause)
{
    struct ended_mailbox *ended = calloc(1, sizeof(*ended));

    if (!ended)
        return false;
    ended->name = strdup(actor->name);
    ended->cause = strdup(cause);
    if (!ended->name || !ended->cause) {
        ended_mailbox_free(ended);
        return false;
    }
    ended->remains.free_some = reject_some;
    ended->reference = actor->reference;
    list_init(&ended->messages);
    mailbox_give_away(&actor->mailbox, &ended->messages);
    remains_add(actor->context, &ended->remains);
    return true;
}

static void reject_messages(struct actor *actor, const char *cause)
{
    const struct undeliverable why = {.reason = DEAD_GONE, .error = ENOENT, .text = cause};
    struct envelope *envelope;

    if (actor->mailbox.n > REMAINS_FREED_PER_TURN && actor->log == 0 && put_off(actor, cause))
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
