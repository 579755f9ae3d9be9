/* SPDX-License-Identifier: MIT */
#include "worker/worker/worker.h"
#include "shared/base/cleanup.h"
#include "worker/public.h"
#include "worker/worker/inherit.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

_public_ int troupe_worker_new(struct troupe_worker **ret)
{
    struct inherited inherited = INHERITED_NULL;
    struct troupe_worker *worker;
    int r;

    r = inherit(&inherited);
    if (r < 0)
        return r;
    worker = malloc(sizeof(*worker));
    if (!worker) {
        inherited_deinit(&inherited);
        return -ENOMEM;
    }
    *worker = (struct troupe_worker){
        .channel = CHANNEL_NULL, .control = inherited.control, .poll_fd = -1};
    r = channel_open(&worker->channel, &inherited.fds);
    if (r < 0) {
        free(worker);
        inherited_deinit(&inherited);
        /* What may not be mapped as it must be is not what it should be. */
        return r == -EPERM || r == -EACCES || r == -EBADF ? -EPROTO : r;
    }
    /* The mappings are all that is needed from here on. */
    channel_close_fds(&worker->channel);
    worker->name = inherited.name;
    worker->generation = inherited.generation;
    worker->inline_max = worker->channel.theirs.header->inline_max;
    list_init(&worker->backlog);
    worker_carry(worker);
    *ret = worker;
    return 0;
}

/* Ends the scope, once. Hands `result` through. */
static int worker_end(struct troupe_worker *worker, int result)
{
    scope_tear_down(worker);
    worker->stage = WORKER_OVER;
    return result;
}

_public_ void troupe_worker_free(struct troupe_worker *worker)
{
    if (!worker)
        return;
    worker_end(worker, 0);
    scope_forget(worker);
    backlog_deinit(worker);
    actor_deinit(&worker->actor);
    if (!lifeline_release(&worker->lifeline))
        worker->channel.mine.header = NULL; /* stays mapped */
    channel_deinit(&worker->channel);
    close_fd(worker->poll_fd);
    close_fd(worker->control);
    free(worker->name);
    free(worker);
}

_public_ int troupe_worker_start_error(int error)
{
    const char *program = program_invocation_short_name;

    if (error == -ENOTCONN)
        fprintf(stderr,
                "%s: not started by trouped: put this program into the ExecStart= of a group\n",
                program);
    else if (error == -EPROTO)
        fprintf(stderr,
                "%s: trouped handed over something that libtroupe %s does not understand: "
                "is one of them of another version?\n",
                program, troupe_version());
    else
        fprintf(stderr, "%s: cannot attach to trouped: %s\n", program, strerror(-error));
    return 1;
}

_public_ const char *troupe_worker_name(const struct troupe_worker *worker)
{
    return worker->name;
}

_public_ uint64_t troupe_worker_generation(const struct troupe_worker *worker)
{
    return worker->generation;
}

_public_ void troupe_worker_on_job(struct troupe_worker *worker, troupe_job_fn fn, void *userdata)
{
    worker->on_job = fn;
    worker->on_job_userdata = userdata;
}

_public_ void troupe_worker_heartbeat(struct troupe_worker *worker)
{
    /* Partner: the supervisor's watchdog, which only compares it with the last value it saw. */
    (void)atomic_fetch_add_explicit(&worker->channel.mine.header->mark, 1, memory_order_relaxed);
}

_public_ int troupe_worker_publish_state(struct troupe_worker *worker, const void *data,
                                         size_t size)
{
    int r;

    r = memory_state_write(&worker->channel.mine, data, size);
    if (r < 0)
        return r;
    troupe_worker_heartbeat(worker);
    return 0;
}

int worker_reserve(struct troupe_worker *worker, uint32_t size, void **ret)
{
    for (;;) {
        int r = ring_reserve(&worker->channel.out, size, ret);

        if (r != RING_E_FULL)
            return r;
        channel_publish(&worker->channel);
        r = channel_wait_space(&worker->channel, size, USEC_INFINITY);
        if (r < 0 && r != -EINTR && r != -ETIMEDOUT)
            return r;
    }
}

int worker_commit(struct troupe_worker *worker, enum protocol_kind kind, int size)
{
    if (size < 0)
        return size;
    ring_commit(&worker->channel.out, (uint16_t)kind, (uint32_t)size);
    channel_publish(&worker->channel);
    return 0;
}

static int worker_begin(struct troupe_worker *worker)
{
    void *body;
    int r;

    if (!worker->on_job && !worker->actor.used)
        return -EINVAL;
    if (worker->stage == WORKER_OVER)
        return -ESHUTDOWN;
    if (worker->stage == WORKER_READY) {
        lifeline_check(&worker->lifeline);
        return 0;
    }
    if (worker->set_up) {
        r = worker->set_up(worker, worker->scope_userdata);
        if (r < 0)
            return worker_end(worker, r);
    }
    worker->stage = WORKER_READY;
    lifeline_hold(&worker->lifeline, worker->channel.mine.header);
    r = worker_reserve(worker, 0, &body);
    if (r == 0)
        r = worker_commit(worker, PROTOCOL_READY, 0);
    return r < 0 ? worker_end(worker, r) : 0;
}

bool worker_supervisor_gone(const struct troupe_worker *worker)
{
    struct pollfd poller = {.fd = worker->control, .events = 0};

    return poll(&poller, 1, 0) > 0 && poller.revents != 0;
}

static int worker_wait(struct troupe_worker *worker, usec_t timeout)
{
    /* What has been read may be waiting for this to change. */
    if (!actor_may_handle(&worker->actor))
        return channel_wait_control(&worker->channel, actor_control(&worker->actor), timeout);
    return channel_wait(&worker->channel, timeout);
}

int worker_receive(struct troupe_worker *worker, usec_t timeout, struct ring_record *ret)
{
    usec_t deadline = USEC_INFINITY, left = timeout;
    uint32_t control = actor_control(&worker->actor);

    for (;;) {
        int r = ring_next(&worker->channel.in, ret);

        if (r != RING_E_EMPTY)
            return r;
        if (timeout == 0 || actor_control(&worker->actor) != control)
            return RING_E_EMPTY;
        if (timeout != USEC_INFINITY && deadline == USEC_INFINITY)
            deadline = usec_add(clock_now(), timeout);
        r = worker_wait(worker, left);
        if (r == -EINTR)
            return RING_E_EMPTY;
        if (r == -ETIMEDOUT)
            return worker_supervisor_gone(worker) ? -ESHUTDOWN : RING_E_EMPTY;
        if (r < 0)
            return r;
        if (deadline != USEC_INFINITY)
            left = usec_sub(deadline, clock_now());
    }
}

/* Its payload lies in the ring until it is done; a handler that may wait for answers gets a copy.
 */
static int handle_job(struct troupe_worker *worker, const struct ring_record *record,
                      uint32_t begin)
{
    struct troupe_actor *actor = &worker->actor;
    int r;

    if (actor->used) {
        r = backlog_keep(worker, record);
        actor_release(actor);
        return r < 0 ? r : backlog_run(worker);
    }
    actor->pinned = true;
    actor->pin = begin;
    r = job_handle(worker, record, -1);
    actor->pinned = false;
    actor_release(actor);
    return r < 0 ? r : 1;
}

static int worker_handle(struct troupe_worker *worker, const struct ring_record *record,
                         uint32_t begin)
{
    int r;

    switch (record->kind) {
    case PROTOCOL_JOB:
        r = handle_job(worker, record, begin);
        break;
    case PROTOCOL_STOP:
        actor_release(&worker->actor);
        return -ESHUTDOWN;
    default:
        if (!actor_takes(record))
            return -EPROTO;
        r = actor_receive(&worker->actor, record, begin);
        actor_release(&worker->actor);
        if (r == 0)
            r = actor_run(&worker->actor);
        /* A record that leads to nothing by itself counts, too. */
        if (r == 0)
            r = 1;
    }
    return r == -EPIPE ? -ESHUTDOWN : r;
}

/* What does not come out of the ring: left over from a handler that waited. */
static int worker_handle_kept(struct troupe_worker *worker)
{
    int r = actor_run(&worker->actor);

    if (r == 0)
        r = backlog_run(worker);
    return r == -EPIPE ? -ESHUTDOWN : r;
}

static int worker_turn(struct troupe_worker *worker, usec_t timeout)
{
    uint32_t begin = worker->channel.in.head;
    struct ring_record record;
    int r;

    if (worker->stopping || actor_stopped(&worker->actor))
        return -ESHUTDOWN;
    r = worker_handle_kept(worker);
    if (r == 0)
        r = actor_ease(&worker->actor);
    if (r != 0)
        return r;
    worker->channel.wakeable = true;
    r = worker_receive(worker, actor_patience(&worker->actor, timeout), &record);
    worker->channel.wakeable = false;
    if (r == RING_E_EMPTY)
        return actor_silent(&worker->actor);
    return r < 0 ? r : worker_handle(worker, &record, begin);
}

_public_ int troupe_worker_turn(struct troupe_worker *worker, uint64_t timeout_usec)
{
    int r;

    r = worker_begin(worker);
    if (r < 0)
        return r;
    r = worker_turn(worker, timeout_usec);
    return r < 0 ? worker_end(worker, r) : r;
}

_public_ int troupe_worker_run(struct troupe_worker *worker)
{
    int r;

    do
        r = troupe_worker_turn(worker, TROUPE_USEC_INFINITY);
    while (r >= 0);
    return r == -ESHUTDOWN ? 0 : r;
}
