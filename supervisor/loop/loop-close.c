/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/closer.h"
#include "supervisor/loop/loop-private.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static bool keep(struct loop *loop, int fd)
{
    if (loop->n_closing == loop->closing_allocated) {
        unsigned n = loop->closing_allocated > 0 ? 2 * loop->closing_allocated : 64;
        int *closing = reallocarray(loop->closing, n, sizeof(*closing));
        if (!closing)
            return false;
        loop->closing = closing;
        loop->closing_allocated = n;
    }
    loop->closing[loop->n_closing++] = fd;
    return true;
}

void loop_close(struct loop *loop, int fd)
{
    if (fd < 0)
        return;
    /* The other end is to see it now, and nobody puts anything more into it. */
    (void)shutdown(fd, SHUT_RDWR);
    if (!keep(loop, fd))
        closer_close(fd);
}

void loop_hand_over_closing(struct loop *loop, unsigned n)
{
    if (n == 0)
        return;
    for (unsigned i = 0; i < n; i++)
        closer_close(loop->closing[i]);
    loop->n_closing -= n;
    memmove(loop->closing, loop->closing + n, loop->n_closing * sizeof(*loop->closing));
}
