/* SPDX-License-Identifier: MIT */
#include "shared/base/closer.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NSEC 1000000
#define STACK_SIZE ((size_t)256 << 10)

static struct {
    bool started;
    int queue[2];              /* a pipe of descriptor numbers: bounded and without a lock */
    _Atomic uint64_t n_queued; /* changed by any thread, read by closer_settle() */
    _Atomic uint64_t n_closed; /* changed by the closer's thread, read by closer_settle() */
    sem_t begun;               /* posted by the thread */
} closer;

static void *closer_run(void *unused)
{
    ssize_t n;
    int fd;

    (void)sem_post(&closer.begun);
    while ((n = read(closer.queue[0], &fd, sizeof(fd))) == sizeof(fd) || errno == EINTR) {
        if (n != sizeof(fd))
            continue;
        (void)close(fd);
        atomic_fetch_add_explicit(&closer.n_closed, 1, memory_order_relaxed);
    }
    return unused;
}

/* If fork() was called before a new thread ran, the child would wait for that thread forever in
 * some calls of the C library. */
static void wait_begun(void)
{
    while (sem_wait(&closer.begun) < 0 && errno == EINTR)
        ;
}

/* The thread blocks all signals, which are for the loop. */
static int add_thread(void)
{
    pthread_attr_t attributes;
    sigset_t blocked, saved;
    pthread_t thread;
    int r = pthread_attr_init(&attributes);

    if (r != 0)
        return -r;
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&blocked);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &saved);
    r = pthread_create(&thread, &attributes, closer_run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    if (r == 0)
        wait_begun();
    return -r;
}

int closer_start(void)
{
    int r;

    if (closer.started)
        return 0;
    if (sem_init(&closer.begun, 0, 0) < 0 || pipe2(closer.queue, O_CLOEXEC) < 0)
        return -errno;
    r = fcntl(closer.queue[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0 ? -errno : add_thread();
    if (r < 0) {
        close_fd(closer.queue[0]);
        close_fd(closer.queue[1]);
        return r;
    }
    closer.started = true;
    return 0;
}

void closer_forget(void)
{
    if (!closer.started)
        return;
    close_fd(closer.queue[0]);
    close_fd(closer.queue[1]);
    closer.started = false;
    atomic_store_explicit(&closer.n_queued, 0, memory_order_relaxed);
    atomic_store_explicit(&closer.n_closed, 0, memory_order_relaxed); /* the thread is gone */
}

void closer_close(int fd)
{
    const int saved = errno;

    if (fd < 0)
        return;
    /* With thousands waiting, the queue is full, and the close happens here. */
    if (closer.started && write(closer.queue[1], &fd, sizeof(fd)) == sizeof(fd))
        atomic_fetch_add_explicit(&closer.n_queued, 1, memory_order_relaxed);
    else
        (void)close(fd);
    errno = saved;
}

void closer_settle(unsigned msec)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NSEC};

    while (closer.started && msec-- > 0 &&
           atomic_load_explicit(&closer.n_closed, memory_order_relaxed) !=
               atomic_load_explicit(&closer.n_queued, memory_order_relaxed))
        (void)nanosleep(&pause, NULL);
}
