/* SPDX-License-Identifier: MIT */

/* Closes descriptors and unmaps memory that the ring may still use. */

#include "shared/base/cleanup.h"
#include "supervisor/loop/loop-private.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

void loop_set_close(struct loop *loop, void (*fn)(int fd, uint64_t owner))
{
    loop->close = fn;
}

static void release(const struct loop *loop, const struct loop_leftover *leftover)
{
    if (leftover->start)
        (void)munmap(leftover->start, leftover->size);
    else if (loop->close)
        loop->close(leftover->fd, leftover->owner);
    else
        (void)close_fd(leftover->fd);
}

static void keep(struct loop *loop, const struct loop_leftover *leftover)
{
    if (loop->n_leftovers == loop->leftovers_allocated) {
        unsigned n = loop->leftovers_allocated > 0 ? 2 * loop->leftovers_allocated : 64;
        struct loop_leftover *leftovers = reallocarray(loop->leftovers, n, sizeof(*leftovers));
        if (!leftovers)
            return release(loop, leftover);
        loop->leftovers = leftovers;
        loop->leftovers_allocated = n;
    }
    if (loop->n_leftovers == 0)
        loop->leftovers_since = loop->now;
    loop->leftovers[loop->n_leftovers++] = *leftover;
}

void loop_close(struct loop *loop, int fd)
{
    loop_close_owned(loop, fd, 0);
}

void loop_close_owned(struct loop *loop, int fd, uint64_t owner)
{
    if (fd < 0)
        return;
    /* The other end sees this immediately, and can send nothing more. */
    (void)shutdown(fd, SHUT_RDWR);
    keep(loop, &(struct loop_leftover){.fd = fd, .owner = owner});
}

void loop_unmap(struct loop *loop, void *start, size_t size)
{
    if (start)
        keep(loop, &(struct loop_leftover){.start = start, .size = size});
}

void loop_release_leftovers(struct loop *loop)
{
    for (unsigned i = 0; i < loop->n_leftovers; i++)
        release(loop, &loop->leftovers[i]);
    loop->n_leftovers = 0;
}
