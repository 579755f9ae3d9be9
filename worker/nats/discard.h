/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages to be destroyed together: for each one alone, libnats wakes a thread that does it. */

#include <nats/nats.h>
#include <stdbool.h>
#include <stddef.h>

#define DISCARD_MAX 256u

struct discard {
    natsMsg *messages[DISCARD_MAX];
    unsigned n;
    size_t bytes; /* of their data */
};

/* Takes over the message, which may be NULL. */
void discard_put(struct discard *discard, natsMsg *message);

/* Destroys all that were put. */
void discard_empty(struct discard *discard);

/* Does so if they are many, or if there is nothing else to do. */
void discard_serve(struct discard *discard, bool idle);
