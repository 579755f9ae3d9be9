/* SPDX-License-Identifier: MIT */
#pragma once

/* The events of the supervisor, over its socket. Reconnects when the supervisor restarts. No call
 * blocks. */

#include "supervisor/caller/varlink-client.h"

struct event_source {
    const char *socket; /* borrowed */
    struct varlink_client client;
    bool connected, told; /* told: the log says that events come */
    bool unfinished;      /* there may be replies that were read, but not taken */
    usec_t again_at;      /* when to connect again */
    char problem[160];    /* the last one that was logged */
    void (*take)(void *userdata, const json_t *event);
    void *userdata;
};

void event_source_init(struct event_source *source, const char *socket,
                       void (*take)(void *userdata, const json_t *event), void *userdata);
void event_source_deinit(struct event_source *source);

/* Connects if it is time to, and calls take() for the events that have come. */
void event_source_run(struct event_source *source, usec_t now);
/* Returns the descriptor that becomes readable with the next event, or -1. */
int event_source_fd(const struct event_source *source);
/* When to run it even if the descriptor is not readable. */
usec_t event_source_deadline(const struct event_source *source);
