/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-end.h"

#include "supervisor/message/actor-name.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/exchange/exchange.h"
#include "supervisor/message/monitor.h"
#include <errno.h>

static void reject_messages(struct actor *actor, const char *cause)
{
    const struct undeliverable why = {.reason = DEAD_GONE, .error = ENOENT, .text = cause};
    struct envelope *envelope;

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
