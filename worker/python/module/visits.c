/* SPDX-License-Identifier: MIT */
#include "worker/python/module/visits.h"
#include <errno.h>
#include <poll.h>

void visits_init(struct visits *visits)
{
    atomic_init(&visits->n, 0);
}

void visits_note(struct visits *visits)
{
    (void)atomic_fetch_add_explicit(&visits->n, 1, memory_order_relaxed);
}

int visits_sleep(const struct visits *visits, int fd, int period)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    unsigned before;
    int r;

    do {
        before = atomic_load_explicit(&visits->n, memory_order_relaxed);
        r = poll(&poller, 1, period);
    } while (r == 0 && atomic_load_explicit(&visits->n, memory_order_relaxed) != before);
    return r < 0 && errno != EINTR ? -errno : r != 0;
}
