/* SPDX-License-Identifier: MIT */
#include "worker/nats/availability.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_RETRY USEC_PER_SEC
/* How often to ask while the group does no jobs. */
#define ASK_PERIOD (5 * USEC_PER_SEC)

static const struct {
    const char *cause;
    size_t member;
} causes[] = {
    {"removed", offsetof(struct obstacles, closed)},
    {"draining", offsetof(struct obstacles, draining)},
    {"store_full", offsetof(struct obstacles, closed)},
    {"store_failed", offsetof(struct obstacles, closed)},
    {"fault", offsetof(struct obstacles, down)},
    {"safe_mode", offsetof(struct obstacles, down)},
    {"failed", offsetof(struct obstacles, absent)},
    {"stopped", offsetof(struct obstacles, absent)},
    {"starting", offsetof(struct obstacles, coming)},
    {"backoff", offsetof(struct obstacles, coming)},
    {"after", offsetof(struct obstacles, coming)},
    {"busy", offsetof(struct obstacles, busy)},
};

void obstacles_note(struct obstacles *obstacles, const char *cause)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (strcmp(causes[i].cause, cause) != 0)
            continue;
        *(bool *)((char *)obstacles + causes[i].member) = true;
        if (*obstacles->cause == '\0' && !obstacles->coming && !obstacles->busy)
            (void)snprintf(obstacles->cause, sizeof(obstacles->cause), "%s", cause);
    }
}

bool obstacles_are_lasting(const struct obstacles *obstacles)
{
    const bool taken = obstacles->coming || obstacles->busy;

    return obstacles->down || (obstacles->absent && !obstacles->coming) ||
           (obstacles->draining && !taken);
}

bool obstacles_to_new_jobs(const struct obstacles *obstacles)
{
    return obstacles->closed || obstacles->draining || obstacles_are_lasting(obstacles);
}

/* ---- the group ---- */

/* Events that may change whether the group does jobs. Starts and deaths of workers are not among
 * them, since a crash loop has many. */
static const char *const events_that_count[] = {
    "worker.failed",  "worker.stopped", "group.cannot-start", "group.mended",
    "group.draining", "group.removed",  "group.resumed",
};

void availability_init(struct availability *availability, const char *group,
                       availability_fn changed, void *userdata)
{
    *availability = (struct availability){
        .group = group, .changed = changed, .userdata = userdata, .ask_at = USEC_INFINITY};
}

static void disconnect(struct troupe_query **query)
{
    troupe_query_free(*query);
    *query = NULL;
}

void availability_deinit(struct availability *availability)
{
    disconnect(&availability->events);
    disconnect(&availability->query);
}

static void set(struct availability *availability, bool down, const char *cause, usec_t now)
{
    const bool before = availability->down;

    availability->down = down;
    if (!down)
        availability->ask_at = USEC_INFINITY;
    else
        availability->ask_at = now + ASK_PERIOD;
    if (down != before)
        availability->changed(availability->userdata, !down, cause);
}

void availability_set_down(struct availability *availability, const char *cause, usec_t now)
{
    set(availability, true, cause, now);
}

static bool counts(const struct availability *availability, const char *type)
{
    if (availability->down && strcmp(type, "worker.ready") == 0)
        return true;
    for (size_t i = 0; i < sizeof(events_that_count) / sizeof(events_that_count[0]); i++)
        if (strcmp(events_that_count[i], type) == 0)
            return true;
    return false;
}

static int call(struct troupe_query *query, const char *method, const char *member,
                const char *group, unsigned flags)
{
    char parameters[160];

    (void)snprintf(parameters, sizeof(parameters), "{\"target\":\"%s\"}", group);
    return troupe_query_call(query, method, member, parameters, flags);
}

/* The question finds out about events before the connection. */
static int connect_events(struct availability *availability, usec_t now)
{
    int r = troupe_query_new(&availability->events, NULL);

    if (r == 0)
        r = call(availability->events, "io.troupe.Supervisor.Watch", "events", availability->group,
                 TROUPE_QUERY_MORE);
    if (r == 0)
        availability->ask_at = now;
    return r;
}

static void hear(struct availability *availability, usec_t now)
{
    int r = availability->events ? 0 : connect_events(availability, now);

    while (r >= 0) {
        r = troupe_query_next(availability->events, 0);
        if (r == 1) {
            const char *type = troupe_query_text(availability->events, "type");

            if (type && counts(availability, type))
                availability->ask_at = now;
        } else if (r == 0) {
            r = -EPIPE; /* events never end by themselves */
        }
    }
    if (r == -EAGAIN || r == -EINTR)
        return;
    disconnect(&availability->events);
    availability->connect_at = now + CONNECT_RETRY;
}

static int begin(struct availability *availability)
{
    int r = availability->query ? 0 : troupe_query_new(&availability->query, NULL);

    if (r == 0)
        r = call(availability->query, "io.troupe.Supervisor.Explain", "waits", availability->group,
                 0);
    availability->asking = r == 0;
    availability->obstacles = (struct obstacles)OBSTACLES_NULL;
    availability->ask_at = USEC_INFINITY;
    return r;
}

/* Returns 0 at the end of the answer, or -errno: -EAGAIN if it has not come. */
static int take_answer(struct availability *availability)
{
    int r;

    while ((r = troupe_query_next(availability->query, 0)) == 1) {
        const char *cause = troupe_query_text(availability->query, "cause");

        if (cause)
            obstacles_note(&availability->obstacles, cause);
    }
    return r;
}

static void ask(struct availability *availability, usec_t now)
{
    int r = availability->asking ? 0 : begin(availability);

    if (r == 0)
        r = take_answer(availability);
    if (r == -EAGAIN || r == -EINTR)
        return;
    availability->asking = false;
    if (r == 0) {
        const bool again = availability->ask_at <= now;

        set(availability, obstacles_to_new_jobs(&availability->obstacles),
            availability->obstacles.cause, now);
        if (again)
            availability->ask_at = now; /* an event came after the question was sent */
    } else if (r == -ENOENT) {
        set(availability, true, "removed", now);
    } else {
        disconnect(&availability->query);
        availability->ask_at = now + CONNECT_RETRY;
    }
}

usec_t availability_process(struct availability *availability, usec_t now)
{
    if (availability->events || now >= availability->connect_at)
        hear(availability, now);
    if (availability->asking || now >= availability->ask_at)
        ask(availability, now);
    if (!availability->events && availability->connect_at < availability->ask_at)
        return availability->connect_at;
    return availability->ask_at;
}

void availability_fds(const struct availability *availability,
                      struct pollfd fds[static AVAILABILITY_FDS])
{
    fds[0] = (struct pollfd){
        .fd = availability->events ? troupe_query_fd(availability->events) : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = availability->asking ? troupe_query_fd(availability->query) : -1,
                             .events = POLLIN};
}
