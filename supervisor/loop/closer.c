/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/closer.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)256 << 10)

struct entry {
    int fd;
    char text[CLOSER_TEXT_SIZE]; /* to write before; "" = none */
};

static struct closer {
    bool started;
    int queue[2]; /* a pipe of entries: bounded and without a lock */
    sem_t begun;  /* posted by the thread */
} closer, writer;

static void finish(const struct entry *entry)
{
    if (entry->text[0] != '\0')
        (void)!write(entry->fd, entry->text, strlen(entry->text));
    (void)close(entry->fd);
}

static void *closer_run(void *argument)
{
    struct closer *self = argument;
    struct entry entry;
    ssize_t n;

    (void)sem_post(&self->begun);
    while ((n = read(self->queue[0], &entry, sizeof(entry))) == sizeof(entry) || errno == EINTR)
        if (n == sizeof(entry))
            finish(&entry);
    return NULL;
}

/* If fork() was called before a new thread ran, the child would wait for that thread forever in
 * some calls of the C library. */
static void wait_begun(struct closer *self)
{
    while (sem_wait(&self->begun) < 0 && errno == EINTR)
        ;
}

/* The thread blocks all signals, which are for the loop. */
static int add_thread(struct closer *self)
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
    r = pthread_create(&thread, &attributes, closer_run, self);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    if (r == 0)
        wait_begun(self);
    return -r;
}

static int start(struct closer *self)
{
    int r;

    if (self->started)
        return 0;
    if (sem_init(&self->begun, 0, 0) < 0 || pipe2(self->queue, O_CLOEXEC) < 0)
        return -errno;
    r = fcntl(self->queue[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0 ? -errno : add_thread(self);
    if (r < 0) {
        close_fd(self->queue[0]);
        close_fd(self->queue[1]);
        return r;
    }
    self->started = true;
    return 0;
}

int closer_start(void)
{
    return start(&closer);
}

/* With thousands waiting, the queue is full. */
static bool pass(const struct closer *to, const struct entry *entry)
{
    return write(to->queue[1], entry, sizeof(*entry)) == sizeof(*entry);
}

void closer_write(int fd, const char *text)
{
    struct entry entry = {.fd = fd};

    (void)snprintf(entry.text, sizeof(entry.text), "%s", text);
    if (!closer.started)
        finish(&entry);
    else if (start(&writer) < 0 || !pass(&writer, &entry))
        closer_close(fd);
}

void closer_close(int fd)
{
    const int saved = errno;

    if (fd < 0)
        return;
    if (!closer.started || !pass(&closer, &(struct entry){.fd = fd}))
        (void)close(fd);
    errno = saved;
}
