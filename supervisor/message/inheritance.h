/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The actors of the last supervisor, until they are made again by their names. They get the same
 * references, which workers, clients and saved rows go on using. The rows that nobody takes are of
 * actors that are gone: their references find nothing, and are not used again.
 */

#include "supervisor/message/actor.h"
#include "supervisor/succession/record.h"
#include "supervisor/succession/waiting-room.h"
#include <stdbool.h>
#include <stdint.h>

#define ACTOR_ROW   "actor"
#define STANDBY_ROW "standby" /* in the waiting room only */

struct actor_row {
    const char *name; /* a standby's: that of its place */
    uint64_t reference;
    bool standby;
    bool needed;   /* something waits for it: it is to be made if it is not there */
    bool exchange; /* a group of its name is another actor */
    struct actor_counters counters;
};

extern const struct record ACTOR_RECORD;

/* Reads a row, whose name is borrowed. Returns 0 or -EBADMSG. */
int inheritance_read(struct saved_reader *row, struct actor_row *ret);
/* Has the row wait for its actor. Returns 0, -EBADMSG or -ENOMEM. */
int inheritance_add(struct waiting_room *room, struct saved_reader *row);
/* Takes the row of the actor of this name, of a standby only if that alone is left. Returns whether
 * there is one; `ret->name` is not valid. */
bool inheritance_take(struct waiting_room *room, const char *name, struct actor_row *ret);
