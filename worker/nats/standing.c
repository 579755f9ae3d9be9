/* SPDX-License-Identifier: MIT */
#include "worker/nats/standing.h"

#include <errno.h>
#include <string.h>

#define CONNECT_RETRY USEC_PER_SEC
/* While the group does no jobs. */
#define ASK_PERIOD (5 * USEC_PER_SEC)

/* Those after which the group may stand differently. In a crash loop, workers start and die all the
 * time; that is none of them. */
static const char *const events_that_count[] = {
    "worker.failed",  "worker.stopped", "group.cannot-start", "group.mended",
    "group.draining", "group.removed",  "group.resumed",
};

void standing_init(struct standing *standing, const char *group, standing_fn changed,
                   void *userdata)
{
    *standing = (struct standing){
        .group = group, .changed = changed, .userdata = userdata, .ask_at = USEC_INFINITY};
}

static void disconnect(struct troupe_query **query)
{
    troupe_query_free(*query);
    *query = NULL;
}

void standing_deinit(struct standing *standing)
{
    disconnect(&standing->events);
    disconnect(&standing->query);
}

static void set(struct standing *standing, bool down, const char *cause, usec_t now)
{
    const bool before = standing->down;

    standing->down = down;
    if (!down)
        standing->ask_at = USEC_INFINITY;
    else
        standing->ask_at = now + ASK_PERIOD;
    if (down != before)
        standing->changed(standing->userdata, !down, cause);
}

void standing_set_down(struct standing *standing, const char *cause, usec_t now)
{
    set(standing, true, cause, now);
}

static bool counts(const struct standing *standing, const char *type)
{
    if (standing->down && strcmp(type, "worker.ready") == 0)
        return true;
    for (size_t i = 0; i < sizeof(events_that_count) / sizeof(events_that_count[0]); i++)
        if (strcmp(events_that_count[i], type) == 0)
            return true;
    return false;
}

/* Events that came while nobody heard them show in what the group waits for now. */
static int connect_events(struct standing *standing, usec_t now)
{
    int r = troupe_query_new(&standing->events, NULL);

    if (r == 0)
        r = troupe_query_events(standing->events, standing->group, 0);
    if (r == 0)
        standing->ask_at = now;
    return r;
}

static void hear(struct standing *standing, usec_t now)
{
    int r = standing->events ? 0 : connect_events(standing, now);

    while (r >= 0) {
        r = troupe_query_next(standing->events, 0);
        if (r == 1) {
            const char *type = troupe_query_text(standing->events, "type");

            if (type && counts(standing, type))
                standing->ask_at = now;
        } else if (r == 0) {
            r = -EPIPE; /* events never end by themselves */
        }
    }
    if (r == -EAGAIN || r == -EINTR)
        return;
    disconnect(&standing->events);
    standing->connect_at = now + CONNECT_RETRY;
}

static int begin(struct standing *standing)
{
    int r = standing->query ? 0 : troupe_query_new(&standing->query, NULL);

    if (r == 0)
        r = troupe_query_waits(standing->query, standing->group);
    standing->asking = r == 0;
    standing->waits = (struct waits)WAITS_NULL;
    standing->ask_at = USEC_INFINITY;
    return r;
}

/* Returns 0 at the end of the answer, or -errno: -EAGAIN if it has not come. */
static int take_answer(struct standing *standing)
{
    int r;

    while ((r = troupe_query_next(standing->query, 0)) == 1) {
        const char *cause = troupe_query_text(standing->query, "cause");

        if (cause)
            waits_note(&standing->waits, cause);
    }
    return r;
}

static void ask(struct standing *standing, usec_t now)
{
    int r = standing->asking ? 0 : begin(standing);

    if (r == 0)
        r = take_answer(standing);
    if (r == -EAGAIN || r == -EINTR)
        return;
    standing->asking = false;
    if (r == 0) {
        const bool again = standing->ask_at <= now;

        set(standing, waits_closed(&standing->waits), standing->waits.cause, now);
        if (again)
            standing->ask_at = now; /* something has happened since the question was sent */
    } else if (r == -ENOENT) {
        set(standing, true, "removed", now);
    } else {
        disconnect(&standing->query);
        standing->ask_at = now + CONNECT_RETRY;
    }
}

usec_t standing_process(struct standing *standing, usec_t now)
{
    if (standing->events || now >= standing->connect_at)
        hear(standing, now);
    if (standing->asking || now >= standing->ask_at)
        ask(standing, now);
    if (!standing->events && standing->connect_at < standing->ask_at)
        return standing->connect_at;
    return standing->ask_at;
}

void standing_fds(const struct standing *standing, struct pollfd fds[static STANDING_FDS])
{
    fds[0] = (struct pollfd){.fd = standing->events ? troupe_query_fd(standing->events) : -1,
                             .events = POLLIN};
    fds[1] = (struct pollfd){.fd = standing->asking ? troupe_query_fd(standing->query) : -1,
                             .events = POLLIN};
}
