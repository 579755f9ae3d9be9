/* SPDX-License-Identifier: MIT */
#include "worker/nats/waits.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *cause;
    size_t member;
} causes[] = {
    {"removed", offsetof(struct waits, closed)},
    {"draining", offsetof(struct waits, draining)},
    {"store_full", offsetof(struct waits, closed)},
    {"store_failed", offsetof(struct waits, closed)},
    {"fault", offsetof(struct waits, down)},
    {"safe_mode", offsetof(struct waits, down)},
    {"failed", offsetof(struct waits, absent)},
    {"stopped", offsetof(struct waits, absent)},
    {"starting", offsetof(struct waits, coming)},
    {"backoff", offsetof(struct waits, coming)},
    {"after", offsetof(struct waits, coming)},
    {"busy", offsetof(struct waits, busy)},
};

void waits_note(struct waits *waits, const char *cause)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (strcmp(causes[i].cause, cause) != 0)
            continue;
        *(bool *)((char *)waits + causes[i].member) = true;
        if (*waits->cause == '\0' && !waits->coming && !waits->busy)
            (void)snprintf(waits->cause, sizeof(waits->cause), "%s", cause);
    }
}

bool waits_in_vain(const struct waits *waits)
{
    const bool taken = waits->coming || waits->busy;

    return waits->down || (waits->absent && !waits->coming) || (waits->draining && !taken);
}

bool waits_closed(const struct waits *waits)
{
    return waits->closed || waits->draining || waits_in_vain(waits);
}
