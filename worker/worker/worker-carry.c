/* SPDX-License-Identifier: MIT */

/* Lets the actor of a worker use the worker's rings. */

#include "worker/public.h"
#include "worker/worker/worker.h"
#include <errno.h>
#include <string.h>

static struct troupe_worker *worker_of(struct carrier *carrier)
{
    return list_entry(carrier, struct troupe_worker, carrier);
}

static int wait_room(struct carrier *carrier, uint32_t size)
{
    int r = channel_wait_space(&carrier->channel, size, USEC_INFINITY);

    return r == -EINTR ? carrier_interrupted(carrier) : r;
}

/*
 * The loop handles jobs and STOP when the waiting handler has returned. A worker without an actor
 * leaves all records to the loop.
 */
static int pump(struct carrier *carrier, usec_t timeout)
{
    struct troupe_worker *worker = worker_of(carrier);
    uint32_t begin = carrier->channel.in.head;
    struct ring_record record;
    int r;

    if (!worker->actor.used)
        return 0;
    r = worker_receive(worker, timeout, &record);
    if (r != 0)
        return r == RING_E_EMPTY ? 0 : r;
    if (record.kind == PROTOCOL_JOB)
        r = backlog_keep(worker, &record);
    else if (record.kind == PROTOCOL_STOP)
        worker->stopping = true;
    else
        r = actor_takes(&record) ? actor_receive(&worker->actor, &record, begin) : -EPROTO;
    actor_release(&worker->actor);
    return r < 0 ? r : 1;
}

static int turn(struct carrier *carrier, usec_t timeout)
{
    return troupe_worker_turn(worker_of(carrier), timeout);
}

static void restarted(struct carrier *carrier, uint64_t read)
{
    struct troupe_actor *actor = &worker_of(carrier)->actor;
    const uint32_t kept = carrier->channel.theirs.header->kept;

    actor_lose(actor, read, kept);
    actor_restarted(actor, kept);
}

const struct carrier_class worker_carrier = {
    .wait_room = wait_room,
    .pump = pump,
    .turn = turn,
    .restarted = restarted,
};

_public_ struct troupe_actor *troupe_worker_actor(struct troupe_worker *worker)
{
    worker->actor.used = true;
    return &worker->actor;
}

_public_ int troupe_actor_leave(struct troupe_actor *actor, const char *reason)
{
    struct protocol_leave leave = {.reason = reason ? reason : ""};
    int r;

    if (actor->carrier->class != &worker_carrier)
        return -EINVAL;
    leave.reason_size = (uint32_t)strnlen(leave.reason, PROTOCOL_REASON_MAX);
    r = carrier_send(actor->carrier, PROTOCOL_LEAVE, leave, &leave, NULL);
    if (r == 0)
        worker_of(actor->carrier)->stopping = true;
    return r;
}
