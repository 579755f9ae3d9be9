/* SPDX-License-Identifier: MIT */

/* Runs tear-down functions when a worker ends or is killed by a signal. */

#include "worker/public.h"
#include "worker/worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* The worker whose scope a signal tears down. */
static struct troupe_worker *_Atomic scoped;

_public_ void troupe_worker_on_scope(struct troupe_worker *worker, troupe_scope_fn set_up,
                                     troupe_scope_end_fn tear_down, void *userdata)
{
    worker->set_up = set_up;
    worker->tear_down = tear_down;
    worker->scope_userdata = userdata;
}

void scope_tear_down(struct troupe_worker *worker)
{
    if (worker->stage == WORKER_READY && worker->tear_down &&
        !atomic_flag_test_and_set(&worker->torn_down))
        worker->tear_down(worker, worker->scope_userdata);
}

void scope_forget(struct troupe_worker *worker)
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
