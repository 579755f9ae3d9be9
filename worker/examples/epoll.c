/* SPDX-License-Identifier: MIT */
/*
 * A worker with its own event loop, here epoll: in addition to jobs it reads lines from a FIFO, and
 * a job is answered with the lines read until then.
 *
 *     ExecStart=… epoll FIFO
 */
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct notes {
    char text[4096];
    size_t size;
};

static int on_job(struct troupe_job *job, void *userdata)
{
    const struct notes *notes = userdata;

    return troupe_job_succeed(job, notes->text, notes->size);
}

static void read_notes(struct notes *notes, int fifo)
{
    ssize_t n = read(fifo, notes->text + notes->size, sizeof(notes->text) - notes->size);

    if (n > 0)
        notes->size += (size_t)n;
}

/* Converts the worker's deadline to the time-out of epoll_wait(). */
static int timeout_ms(uint64_t deadline_usec)
{
    struct timespec now;
    uint64_t now_usec, left;

    if (deadline_usec == TROUPE_USEC_INFINITY)
        return -1;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    now_usec = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    left = deadline_usec > now_usec ? (deadline_usec - now_usec) / 1000 + 1 : 0;
    return left > 60000 ? 60000 : (int)left;
}

static int add(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return fd < 0 ? fd : epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int loop(struct troupe_worker *worker, struct notes *notes, int fifo)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), r;

    r = epoll < 0 ? -errno : add(epoll, fifo);
    if (r == 0)
        r = add(epoll, troupe_worker_fd(worker));
    while (r >= 0) {
        struct epoll_event event;

        /* Everything that has arrived, one job or message at a time. */
        while ((r = troupe_worker_process(worker)) > 0)
            ;
        if (r == 0 &&
            epoll_wait(epoll, &event, 1, timeout_ms(troupe_worker_timeout(worker))) == 1 &&
            event.data.fd == fifo)
            read_notes(notes, fifo);
    }
    if (epoll >= 0)
        (void)close(epoll);
    return r == -ESHUTDOWN ? 0 : r;
}

int main(int argc, char **argv)
{
    struct troupe_worker *worker;
    struct notes notes = {.size = 0};
    int fifo, r;

    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    fifo = argc == 2 ? open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fifo < 0) {
        fputs("usage: epoll FIFO\n", stderr);
        return 2;
    }
    troupe_worker_on_job(worker, on_job, &notes);
    r = loop(worker, &notes, fifo);
    troupe_worker_free(worker);
    (void)close(fifo);
    return r < 0;
}
