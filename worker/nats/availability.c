/* SPDX-License-Identifier: MIT */
#include "worker/nats/availability.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ASK_PERIOD USEC_PER_SEC

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

/* Like obstacles_are_lasting(), but also true if new jobs are refused. */
static bool obstacles_to_new_jobs(const struct obstacles *obstacles)
{
    return obstacles->closed || obstacles->draining || obstacles_are_lasting(obstacles);
}

/* ---- the group ---- */

void availability_init(struct availability *availability, const char *group,
                       availability_fn changed, void *userdata)
{
    *availability = (struct availability){.group = group, .changed = changed, .userdata = userdata};
}

static void disconnect(struct availability *availability)
{
    troupe_query_free(availability->query);
    availability->query = NULL;
}

void availability_deinit(struct availability *availability)
{
    disconnect(availability);
}

static void set(struct availability *availability, bool down, const char *cause)
{
    const bool before = availability->down;

    availability->down = down;
    if (down != before)
        availability->changed(availability->userdata, !down, cause);
}

void availability_set_down(struct availability *availability, const char *cause, usec_t now)
{
    availability->ask_at = now + ASK_PERIOD;
    set(availability, true, cause);
}

static int begin(struct availability *availability, usec_t now)
{
    int r = availability->query ? 0 : troupe_query_new(&availability->query, NULL);
    char parameters[160];

    (void)snprintf(parameters, sizeof(parameters), "{\"target\":\"%s\"}", availability->group);
    if (r == 0)
        r = troupe_query_call(availability->query, "io.troupe.Supervisor.Explain", "waits",
                              parameters, 0);
    availability->asking = r == 0;
    availability->obstacles = (struct obstacles)OBSTACLES_NULL;
    availability->ask_at = now + ASK_PERIOD;
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

usec_t availability_process(struct availability *availability, usec_t now)
{
    int r = 0;

    if (!availability->asking && now < availability->ask_at)
        return availability->ask_at;
    if (!availability->asking)
        r = begin(availability, now);
    if (r == 0)
        r = take_answer(availability);
    if (r == -EAGAIN || r == -EINTR)
        return USEC_INFINITY;
    availability->asking = false;
    if (r == 0)
        set(availability, obstacles_to_new_jobs(&availability->obstacles),
            availability->obstacles.cause);
    else if (r == -ENOENT)
        set(availability, true, "removed");
    else
        disconnect(availability);
    return availability->ask_at;
}

int availability_fd(const struct availability *availability)
{
    return availability->asking ? troupe_query_fd(availability->query) : -1;
}
