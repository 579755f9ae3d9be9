/* SPDX-License-Identifier: MIT */

/* Lets the actor of a client use the client's rings. */

#include "worker/client/client.h"
#include "worker/public.h"
#include <errno.h>

/* Bounds a wait for room, so that the supervisor's answers are read from time to time. */
#define FULL_SLICE_MS 100

static struct troupe_client *client_of(struct carrier *carrier)
{
    return list_entry(carrier, struct troupe_client, carrier);
}

/* The supervisor may have stopped reading until this side takes its answers. */
static int wait_room(struct carrier *carrier, uint32_t size)
{
    int r = carrier_drain(carrier);

    if (r < 0)
        return r;
    channel_release(&carrier->channel);
    r = channel_wait_space(&carrier->channel, size, FULL_SLICE_MS * USEC_PER_MSEC);
    if (r == -EINTR)
        return carrier_interrupted(carrier);
    return r == -ETIMEDOUT ? 0 : r;
}

/* Nothing arrives after the end of the connection, but futures may have ended because of it. */
static int pump_over(struct troupe_client *client)
{
    const uint64_t before = client->actor.n_received;

    client_lose(client, UINT64_MAX, 0);
    return client->actor.n_received > before ? 1 : -EPIPE;
}

/* Keeps ends of jobs for troupe_client_next(). */
static int pump(struct carrier *carrier, usec_t timeout)
{
    struct troupe_client *client = client_of(carrier);
    const uint64_t before = client->actor.n_received;
    const bool over = carrier->over;
    struct answer answer;
    int r = answer_next(client, &answer);

    if (r == 0)
        r = answer_queue(client, &answer);
    else if (r == -EPIPE)
        return pump_over(client);
    else if (r == RING_E_EMPTY && client->actor.n_received == before) {
        if (over)
            return pump_over(client);
        r = client_sleep(client, timeout);
        return r == -ETIMEDOUT ? 0 : r;
    }
    return r < 0 ? r : 1;
}

static int turn(struct carrier *carrier, usec_t timeout)
{
    const usec_t deadline = clock_deadline(timeout);
    struct troupe_actor *actor = &client_of(carrier)->actor;
    int r;

    for (;;) {
        r = actor_run(actor);
        if (r == 0)
            r = actor_ease(actor);
        if (r != 0)
            return r;
        if (actor_silent(actor))
            return 1;
        timeout = clock_left(deadline);
        carrier->channel.wakeable = true;
        r = pump(carrier, actor_patience(actor, timeout));
        carrier->channel.wakeable = false;
        if (r < 0)
            return r == -EINTR ? 0 : r;
        if (r == 0 && timeout == 0)
            return 0;
    }
}

void client_lose(struct troupe_client *client, uint64_t read, uint32_t kept)
{
    if (!(kept & MEMORY_KEPT_REQUESTS)) {
        client->bereft = true;
        client->read = read;
        client->pending.cursor = 0;
    }
    actor_lose(&client->actor, read, kept);
}

static void restarted(struct carrier *carrier, uint64_t read)
{
    struct troupe_client *client = client_of(carrier);
    const uint32_t kept = carrier->channel.theirs.header->kept;

    client->restarted = true;
    client_lose(client, read, kept);
    actor_restarted(&client->actor, kept);
}

const struct carrier_class client_carrier = {
    .wait_room = wait_room,
    .pump = pump,
    .turn = turn,
    .restarted = restarted,
};

_public_ struct troupe_actor *troupe_client_actor(struct troupe_client *client)
{
    client->actor.used = true;
    return &client->actor;
}
