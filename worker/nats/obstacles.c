/* SPDX-License-Identifier: MIT */
#include "worker/nats/obstacles.h"

#include "shared/base/cleanup.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
    for (size_t i = 0; i < ELEMENTS(causes) && cause; i++) {
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
