/* SPDX-License-Identifier: MIT */

/* Attached clients across a crash: the keeper holds their rings and connections, and the next
 * supervisor continues with them. */

#include "supervisor/client/attachment-private.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/channel/endpoint-adopt.h"
#include "supervisor/client/attachment.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-context.h"
#include "supervisor/pool/pool-context.h"
#include "supervisor/process/holding.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Raise it when the descriptors change. */
#define HOLDING_VERSION 1

static struct spawner *spawner_of(const struct attachment *attachment)
{
    return &attachment->context->pools->process->spawner;
}

void attachment_hold(struct attachment *attachment)
{
    int fds[1 + ENDPOINT_HELD_FDS] = {attachment->connection};
    const struct holding_content content = {
        .kind = HOLDING_CLIENT,
        .version = HOLDING_VERSION,
        .name = attachment->actor->name,
        .fds = fds,
        .n_fds = 1 + endpoint_held_fds(&attachment->endpoint, fds + 1),
    };
    struct spawner *spawner = spawner_of(attachment);
    int r = attachment->keeper.id != 0 ? 0 : spawner_register(spawner, &attachment->keeper);

    if (r == 0)
        r = holding_put(&attachment->holding, spawner, &attachment->keeper, 0, &content);
    if (r < 0)
        log_debug("client %s will not outlive a crash: %s", content.name, strerror(-r));
}

void attachment_drop_holding(struct attachment *attachment)
{
    struct spawner *spawner = spawner_of(attachment);

    holding_drop(&attachment->holding, spawner);
    spawner_forget(spawner, &attachment->keeper);
}

int attachment_take_connection(struct held *held)
{
    return held->version == HOLDING_VERSION && held->n_fds > 0 ? TAKE_FD(held->fds[0]) : -1;
}

/* Later clients get higher numbers, so that an address is never used again. */
static int reserve_name(struct message_context *messages, const char *name)
{
    uint64_t number;

    if (!client_name_read(name, &number))
        return -EPROTO;
    if (*messages->last_client < number)
        *messages->last_client = number;
    return 0;
}

/* Sets up the endpoint. The descriptors are its own from then on. */
static int adopt_endpoint(struct attachment *attachment, const struct attachment_options *client,
                          struct held *held)
{
    struct endpoint_adoption adoption = {.blobs = client->blobs,
                                         .kept = attachment->context->messages->kept};
    int r = endpoint_fds_from_held(&adoption.fds, held->fds + 1, held->n_fds - 1);

    if (r == 0)
        r = endpoint_adopt(&attachment->endpoint, attachment->context->loop, &adoption,
                           &ATTACHMENT_ENDPOINT);
    for (size_t i = 1; r == 0 && i < held->n_fds; i++)
        held->fds[i] = -1;
    return r;
}

/* Makes the attachment; the peer does not know of it yet. */
static int resume(struct attachment **ret, const struct group_context *context,
                  const struct attachment_options *client, struct held *held)
{
    struct attachment *attachment;
    int r = reserve_name(context->messages, held->name);

    if (r == 0)
        r = attachment_allocate(&attachment, context, client);
    if (r < 0)
        return r;
    r = adopt_endpoint(attachment, client, held);
    if (r < 0) {
        free(attachment);
        return r;
    }
    r = attachment_new_actor(attachment, held->name);
    if (r < 0) {
        (void)attachment_free(attachment);
        return r;
    }
    delivery_adopt(attachment->actor, &attachment->endpoint);
    *ret = attachment;
    return 0;
}

int attachment_adopt(struct attachment **ret, const struct group_context *context,
                     const struct attachment_options *client, struct held *held)
{
    struct attachment *attachment;
    int r = resume(&attachment, context, client, held);

    if (r < 0) {
        held_discard(held);
        return r;
    }
    held_adopt(held, &attachment->keeper, &attachment->holding);
    /* First, as the client reads no other inbox once it has this one. */
    attachment_hold(attachment);
    endpoint_hand_over(&attachment->endpoint);
    r = endpoint_open(&attachment->endpoint);
    if (r < 0)
        (void)attachment_free(attachment);
    else
        *ret = attachment;
    return r;
}
