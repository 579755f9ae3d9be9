/* SPDX-License-Identifier: MIT */

/* Connects the actor of a client with the rings of the client. */

#include "shared/base/cleanup.h"
#include "worker/client/client.h"
#include "worker/public.h"

/* A client's end of the channel, as its actor uses it. */

static int reserve(void *owner, uint32_t size, void **ret)
{
    struct troupe_client *client = owner;

    return client->over ? -EPIPE : request_reserve(client, size, true, ret);
}

static int commit(void *owner, uint16_t kind, int size)
{
    struct troupe_client *client = owner;

    if (size < 0)
        return size;
    ring_commit(&client->channel.out, kind, (uint32_t)size);
    troupe_client_flush(client);
    return 0;
}

/* Ends of jobs are kept for troupe_client_next(). */
static int pump(void *owner, usec_t timeout)
{
    struct troupe_client *client = owner;
    uint64_t before = client->actor.n_received;
    bool over = client->over;
    struct answer answer;
    int r;

    r = answer_next(client, &answer);
    if (r == 0) {
        r = answer_queue(client, &answer);
        return r < 0 ? r : 1;
    }
    if (r < 0)
        return r;
    if (client->actor.n_received != before)
        return 1;
    if (over)
        return -EPIPE;
    r = client_sleep(client, timeout);
    return r == -ETIMEDOUT ? 0 : r;
}

static int turn(void *owner, usec_t timeout)
{
    struct troupe_client *client = owner;
    struct troupe_actor *actor = &client->actor;
    usec_t deadline = timeout == USEC_INFINITY ? timeout : usec_add(clock_now(), timeout);
    int r;

    for (;;) {
        r = actor_run(actor);
        if (r == 0)
            r = actor_ease(actor);
        if (r != 0)
            return r;
        if (actor_silent(actor))
            return 1;
        timeout = deadline == USEC_INFINITY ? deadline : usec_sub(deadline, clock_now());
        client->channel.wakeable = true;
        r = pump(client, actor_patience(actor, timeout));
        client->channel.wakeable = false;
        if (r < 0)
            return r == -EINTR ? 0 : r;
        if (r == 0 && timeout == 0)
            return 0;
    }
}

static const struct carrier_class class = {
    .reserve = reserve, .commit = commit, .pump = pump, .turn = turn};

void client_carry(struct troupe_client *client)
{
    const struct carrier carrier = {
        .class = &class,
        .owner = client,
        .channel = &client->channel,
        .blobs_sent = &client->blobs_sent,
        .inline_max = client->inline_max,
        .control = client->control,
        .address = client->address,
    };

    actor_init(&client->actor, &carrier);
}

_public_ struct troupe_actor *troupe_client_actor(struct troupe_client *client)
{
    client->actor.used = true;
    return &client->actor;
}
