/* SPDX-License-Identifier: MIT */
#include "worker/worker/worker.h"
#include "shared/base/cleanup.h"
#include "worker/public.h"
#include "worker/worker/crash.h"
#include "worker/worker/inherit.h"
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- the scope ---- */

/* The worker whose scope a signal tears down. */
static struct troupe_worker *_Atomic scoped;

_public_ void troupe_worker_on_scope(struct troupe_worker *worker, troupe_scope_fn set_up,
                                     troupe_scope_end_fn tear_down, void *userdata)
{
    worker->set_up = set_up;
    worker->tear_down = tear_down;
    worker->scope_userdata = userdata;
}

/* Tears the scope down if it is up. Idempotent, and safe if a signal arrives during the call. */
static void scope_tear_down(struct troupe_worker *worker)
{
    if (worker->stage == WORKER_READY && worker->tear_down &&
        !atomic_flag_test_and_set(&worker->torn_down))
        worker->tear_down(worker, worker->scope_userdata);
}

/* Stops signals from tearing down this worker's scope. */
static void scope_forget(struct troupe_worker *worker)
{
    struct troupe_worker *expected = worker;

    (void)atomic_compare_exchange_strong(&scoped, &expected, NULL);
}

/* SA_RESETHAND restored the default, so the raised signal ends the process, unless it is process 1
 * of a PID namespace: for that, the kernel drops signals without a handler. */
static void on_signal(int signo)
{
    struct troupe_worker *worker = atomic_load(&scoped);
    int error = errno;

    if (worker)
        scope_tear_down(worker);
    if (getpid() == 1)
        _exit(128 + signo);
    (void)raise(signo);
    errno = error;
}

_public_ int troupe_worker_tear_down_on(struct troupe_worker *worker, int signo)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    atomic_store(&scoped, worker);
    (void)sigemptyset(&action.sa_mask);
    return sigaction(signo, &action, NULL) < 0 ? -errno : 0;
}

/* ---- the worker ---- */

_public_ int troupe_worker_new(struct troupe_worker **ret)
{
    struct inherited inherited = INHERITED_NULL;
    struct troupe_worker *worker;
    int r = inherit(&inherited);

    if (r < 0)
        return r;
    worker = calloc(1, sizeof(*worker));
    r = worker ? 0 : -ENOMEM;
    if (r == 0 && inherited.job_tmp)
        r = private_tmp_open(&worker->tmp);
    if (r == 0)
        r = carrier_open(&worker->carrier, &worker_carrier, &inherited.fds, inherited.control);
    if (r < 0) {
        if (worker)
            private_tmp_deinit(&worker->tmp);
        free(worker);
        inherited_deinit(&inherited);
        /* Memory that cannot be mapped as expected does not come from a supervisor. */
        return r == -EPERM || r == -EACCES || r == -EBADF ? -EPROTO : r;
    }
    worker->name = inherited.name;
    worker->generation = inherited.generation;
    list_init(&worker->backlog);
    actor_init(&worker->actor, &worker->carrier, worker->name);
    *ret = worker;
    return 0;
}

/* Returns `result`. */
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
    crash_forget();
    backlog_deinit(worker);
    private_tmp_deinit(&worker->tmp);
    actor_deinit(&worker->actor);
    if (!lifeline_release(&worker->lifeline))
        worker->carrier.channel.mine.header = NULL; /* stays mapped */
    carrier_deinit(&worker->carrier);
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
                "are their versions different?\n",
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
    /* Partner: the supervisor's watchdog, which compares it with the last value that it saw. */
    (void)atomic_fetch_add_explicit(&worker->carrier.channel.words->mark, 1, memory_order_relaxed);
}

_public_ int troupe_worker_publish_state(struct troupe_worker *worker, const void *data,
                                         size_t size)
{
    int r = memory_state_write(&worker->carrier.channel.mine, data, size);

    if (r == 0)
        troupe_worker_heartbeat(worker);
    return r;
}

/* Sends READY once the scope is set up. */
static int worker_begin(struct troupe_worker *worker)
{
    uint32_t room = 0;
    void *body;
    int r = 0;

    if (!worker->on_job && !worker->actor.used)
        return -EINVAL;
    if (worker->stage == WORKER_OVER)
        return -ESHUTDOWN;
    if (worker->stage == WORKER_READY) {
        lifeline_check(&worker->lifeline);
        return 0;
    }
    if (worker->set_up)
        r = worker->set_up(worker, worker->scope_userdata);
    if (r < 0)
        return worker_end(worker, r);
    worker->stage = WORKER_READY;
    lifeline_hold(&worker->lifeline, worker->carrier.channel.mine.header);
    crash_watch(&worker->carrier.channel);
    r = carrier_begin(&worker->carrier, 0, NULL, &room, &body);
    if (r < 0)
        return worker_end(worker, r);
    (void)carrier_commit(&worker->carrier, PROTOCOL_READY, 0);
    carrier_flush(&worker->carrier);
    return 0;
}

/* Returns whether the supervisor is gone, which does not wake a worker. */
static bool worker_supervisor_gone(const struct troupe_worker *worker)
{
    struct pollfd poller = {.fd = worker->carrier.control, .events = 0};

    return poll(&poller, 1, 0) > 0 && poller.revents != 0;
}

static int worker_wait(struct troupe_worker *worker, uint32_t control, usec_t timeout)
{
    /* Now, while no job waits for this worker. A failure is tried again before the next job. */
    if (worker->n_handled == 0)
        (void)private_tmp_empty(&worker->tmp);
    return channel_wait_control(&worker->carrier.channel, control, timeout);
}

int worker_receive(struct troupe_worker *worker, usec_t timeout, struct ring_record *ret)
{
    const uint32_t control = actor_control(&worker->actor);
    const uint64_t received = worker->actor.n_received;
    usec_t deadline = 0;

    for (;;) {
        int r = carrier_next(&worker->carrier, ret);

        if (r != RING_E_EMPTY)
            return r;
        if (timeout == 0 || actor_control(&worker->actor) != control ||
            worker->actor.n_received != received)
            return RING_E_EMPTY;
        if (deadline == 0)
            deadline = clock_deadline(timeout);
        r = worker_wait(worker, control, clock_left(deadline));
        if (r == -EINTR)
            return RING_E_EMPTY;
        if (r == -ETIMEDOUT)
            return worker_supervisor_gone(worker) ? -ESHUTDOWN : RING_E_EMPTY;
        if (r < 0)
            return r;
    }
}

/* The payload stays in the ring; a handler that may wait for answers gets a copy instead. */
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
        if (r == 0)
            r = 1;
    }
    return r == -EPIPE ? -ESHUTDOWN : r;
}

/* Handles jobs and messages that were read while a handler waited. */
static int worker_handle_kept(struct troupe_worker *worker)
{
    int r = actor_run(&worker->actor);

    if (r == 0)
        r = backlog_run(worker);
    return r == -EPIPE ? -ESHUTDOWN : r;
}

static int worker_turn(struct troupe_worker *worker, usec_t timeout)
{
    uint32_t begin = worker->carrier.channel.in.head;
    struct ring_record record;
    int r;

    if (worker->stopping || actor_stopped(&worker->actor))
        return -ESHUTDOWN;
    r = worker_handle_kept(worker);
    if (r == 0)
        r = actor_ease(&worker->actor);
    if (r != 0)
        return r;
    worker->carrier.channel.wakeable = true;
    r = worker_receive(worker, actor_patience(&worker->actor, timeout), &record);
    worker->carrier.channel.wakeable = false;
    if (r == RING_E_EMPTY)
        return actor_silent(&worker->actor);
    return r < 0 ? r : worker_handle(worker, &record, begin);
}

_public_ int troupe_worker_turn(struct troupe_worker *worker, uint64_t timeout_usec)
{
    int r = worker_begin(worker);

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

_public_ int troupe_worker_fd(struct troupe_worker *worker)
{
    return carrier_fd(&worker->carrier, worker->carrier.control, 0);
}

_public_ uint64_t troupe_worker_timeout(const struct troupe_worker *worker)
{
    return worker->actor.silence_at;
}

_public_ int troupe_worker_process(struct troupe_worker *worker)
{
    struct channel *channel = &worker->carrier.channel;
    bool armed, woken;
    int r;

    channel_end_sleep(channel);
    r = troupe_worker_turn(worker, 0);
    if (r != 0)
        return r;
    channel->wakeable = true;
    armed = channel_arm(channel, &woken);
    channel->wakeable = false;
    if (armed && worker_supervisor_gone(worker))
        r = -ESHUTDOWN;
    else
        r = !armed || actor_control_changed(&worker->actor);
    if (r != 0)
        channel_end_sleep(channel);
    return r;
}

_public_ void troupe_worker_wake(struct troupe_worker *worker)
{
    channel_wake_self(&worker->carrier.channel);
}
