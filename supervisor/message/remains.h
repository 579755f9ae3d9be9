/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages, timers and subscriptions of ended actors. An actor may leave a million of them, so they
 * are freed over several turns. */

#include "shared/base/list.h"
#include <stddef.h>

struct message_context;

/* Embedded in the struct that owns the items. */
struct remains {
    struct list link;
    /* Frees at most `max` items; after the last one, unlinks and frees the remains. Returns how
     * many. */
    size_t (*free_some)(struct message_context *context, struct remains *remains, size_t max);
};

#define REMAINS_FREED_PER_TURN 512u /* a microsecond or two each */

void remains_init(struct message_context *context);
/* Frees the remains in later turns. */
void remains_add(struct message_context *context, struct remains *remains);
/* Frees all remains now: before an upgrade and at the end. */
void remains_settle(struct message_context *context);
