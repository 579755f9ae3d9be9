/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/closer.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)256 << 10)

static struct {
    bool started;
    int queue[2]; /* a pipe of descriptor numbers: bounded and without a lock */
    sem_t begun;  /* posted by the thread */
} closer;

static void *closer_run(void *unused)
{
    ssize_t n;
    int fd;

    (void)sem_post(&closer.begun);
    while ((n = read(closer.queue[0], &fd, sizeof(fd))) == sizeof(fd) || errno == EINTR)
        if (n == sizeof(fd))
            (void)close(fd);
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

void closer_close(int fd)
{
    const int saved = errno;

    if (fd < 0)
        return;
    /* With thousands waiting, the queue is full, and the close happens here. */
    if (!closer.started || write(closer.queue[1], &fd, sizeof(fd)) != sizeof(fd))
        (void)close(fd);
    errno = saved;
}
