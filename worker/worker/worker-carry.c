/* SPDX-License-Identifier: MIT */

/* Connects the actor of a worker with the rings of the worker. */

#include "shared/base/cleanup.h"
#include "worker/public.h"
#include "worker/worker/worker.h"
#include <string.h>

/* A worker's end of the channel, as its actor uses it. */

static int reserve(void *owner, uint32_t size, void **ret)
{
    return worker_reserve(owner, size, ret);
}

static int commit(void *owner, uint16_t kind, int size)
{
    return worker_commit(owner, (enum protocol_kind)kind, size);
}

/* Jobs and the request to stop are for the loop, when the handler that waits has returned. */
static int take_in(struct troupe_worker *worker, const struct ring_record *record, uint32_t begin)
{
    int r = 0;

    if (record->kind == PROTOCOL_JOB)
        r = backlog_keep(worker, record);
    else if (record->kind == PROTOCOL_STOP)
        worker->stopping = true;
    else
        r = actor_takes(record) ? actor_receive(&worker->actor, record, begin) : -EPROTO;
    actor_release(&worker->actor);
    return r < 0 ? r : 1;
}

static int pump(void *owner, usec_t timeout)
{
    struct troupe_worker *worker = owner;
    uint32_t begin = worker->channel.in.head;
    struct ring_record record;
    int r = worker_receive(worker, timeout, &record);

    if (r == RING_E_EMPTY)
        return 0;
    return r < 0 ? r : take_in(worker, &record, begin);
}

static int turn(void *owner, usec_t timeout)
{
    return troupe_worker_turn(owner, timeout);
}

static int leave(void *owner, const char *reason)
{
    struct troupe_worker *worker = owner;
    const struct protocol_leave what = {
        .reason = reason, .reason_size = (uint32_t)strnlen(reason, PROTOCOL_REASON_MAX)};
    const uint32_t room = 16 + what.reason_size;
    void *body;
    int r = worker_reserve(worker, room, &body);

    if (r == 0)
        r = worker_commit(worker, (enum protocol_kind)PROTOCOL_LEAVE,
                          protocol_put_leave(body, room, &what));
    if (r == 0)
        worker->stopping = true;
    return r;
}

static const struct carrier_class class = {
    .reserve = reserve, .commit = commit, .pump = pump, .turn = turn, .leave = leave};

void worker_carry(struct troupe_worker *worker)
{
    const struct carrier carrier = {
        .class = &class,
        .owner = worker,
        .channel = &worker->channel,
        .blobs_sent = &worker->blobs_sent,
        .inline_max = worker->inline_max,
        .control = worker->control,
        .address = worker->name,
    };

    actor_init(&worker->actor, &carrier);
}

_public_ struct troupe_actor *troupe_worker_actor(struct troupe_worker *worker)
{
    worker->actor.used = true;
    return &worker->actor;
}
