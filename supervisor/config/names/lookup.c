/* SPDX-License-Identifier: MIT */
#include "supervisor/config/names/lookup.h"

#include "shared/base/log.h"
#include <errno.h>
#include <poll.h>
#include <string.h>

static void stop_waiting(struct lookup *lookup)
{
    loop_unwatch(lookup->loop, &lookup->watch);
    timer_disarm(loop_timers(lookup->loop), &lookup->timeout);
}

static void on_readable(void *userdata, uint32_t events);

/* Watches the current process, which may have replaced an earlier one. */
static int wait_for_process(struct lookup *lookup)
{
    usec_t at = usec_add(loop_now(lookup->loop), NAMES_TIMEOUT);

    stop_waiting(lookup);
    timer_arm(loop_timers(lookup->loop), &lookup->timeout, at < lookup->end ? at : lookup->end);
    return loop_watch_fd(lookup->loop, &lookup->watch, lookup->names.fd, POLLIN, on_readable,
                         lookup);
}

/* `r`: 0, or the error that ends the lookup. */
static void go_on(struct lookup *lookup, int r)
{
    if (r == 0 && lookup->names.pid != 0)
        r = wait_for_process(lookup);
    if (r == 0 && lookup->names.pid != 0)
        return;
    stop_waiting(lookup);
    if (r < 0)
        log_warning("users, groups and files cannot be looked up: %s", strerror(-r));
    names_give_up(&lookup->names);
    lookup->done(lookup);
}

static void on_readable(void *userdata, uint32_t events)
{
    struct lookup *lookup = userdata;

    go_on(lookup, names_read(&lookup->names));
}

static void on_timeout(struct timer *timer, usec_t now)
{
    struct lookup *lookup = list_entry(timer, struct lookup, timeout);

    if (now >= lookup->end)
        names_give_up(&lookup->names);
    go_on(lookup, names_skip(&lookup->names, ETIMEDOUT));
}

void lookup_init(struct lookup *lookup, struct loop *loop, void (*done)(struct lookup *lookup))
{
    *lookup =
        (struct lookup){.loop = loop, .names = NAMES_NULL, .watch = LOOP_WATCH_NULL, .done = done};
    timer_init(&lookup->timeout, on_timeout);
}

int lookup_start(struct lookup *lookup)
{
    int r = names_start(&lookup->names);

    if (r < 0 || lookup->names.pid == 0)
        return r < 0 ? r : LOOKUP_E_DONE;
    lookup->end = usec_add(loop_now(lookup->loop), NAMES_TIMEOUT_ALL);
    r = wait_for_process(lookup);
    if (r < 0)
        stop_waiting(lookup);
    return r;
}

void lookup_deinit(struct lookup *lookup)
{
    if (!lookup->loop)
        return;
    stop_waiting(lookup);
    names_deinit(&lookup->names);
    lookup->loop = NULL;
}
