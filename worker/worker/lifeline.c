/* SPDX-License-Identifier: MIT */
#include "worker/worker/lifeline.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(pthread_mutex_t) <= MEMORY_OWNER_SIZE, "room for it in the outbox");

static pthread_mutex_t *mutex_in(struct memory_header *outbox)
{
    return (pthread_mutex_t *)(void *)&outbox->owner;
}

static int init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int r = pthread_mutexattr_init(&attributes);

    if (r != 0)
        return r;
    r = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (r == 0)
        r = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (r == 0)
        r = pthread_mutex_init(mutex, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
    return r;
}

void lifeline_hold(struct lifeline *lifeline, struct memory_header *outbox)
{
    pthread_mutex_t *mutex = mutex_in(outbox);
    uint32_t thread = (uint32_t)syscall(SYS_gettid);

    if (init_mutex(mutex) != 0 || pthread_mutex_lock(mutex) != 0)
        return;
    lifeline->outbox = outbox;
    lifeline->holder = pthread_self();
    /*
     * Without this bit the kernel does not wake the supervisor. In this C library the mutex begins
     * with the lock's word, which holds the thread's number; in another, this changes nothing.
     * Partner: the supervisor's load when it reads READY.
     */
    (void)atomic_compare_exchange_strong_explicit(&outbox->owner, &thread, thread | FUTEX_WAITERS,
                                                  memory_order_relaxed, memory_order_relaxed);
}

void lifeline_check(struct lifeline *lifeline)
{
    if (lifeline->outbox && !pthread_equal(lifeline->holder, pthread_self()))
        /* The kernel marks only words with the number of the thread that ends. */
        atomic_store_explicit(&lifeline->outbox->owner, 0, memory_order_relaxed);
}

bool lifeline_release(struct lifeline *lifeline)
{
    bool ours = true;

    if (lifeline->outbox) {
        ours = pthread_equal(lifeline->holder, pthread_self()) &&
               pthread_mutex_unlock(mutex_in(lifeline->outbox)) == 0;
        if (!ours)
            atomic_store_explicit(&lifeline->outbox->owner, 0, memory_order_relaxed);
    }
    lifeline->outbox = NULL;
    return ours;
}
