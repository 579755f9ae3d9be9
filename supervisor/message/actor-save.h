/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Actors across an upgrade. An actor that is made again has the reference that it had, so rows of
 * other kinds name actors by reference, and find them with actor_get() once the groups, the
 * workers and the clients are there. A reference of an actor that has ended, or that is not made
 * again, finds nothing for good.
 */

#include "supervisor/succession/record.h"

struct message_context;

#define ACTOR_ROW    "actor"
#define MESSAGES_ROW "messages" /* ids and references that must not be used again */

/* Saves all actors and that row. Returns 0 or -errno of the saver. */
int actors_save(const struct message_context *context, struct saver *saver);

/* These come before any actor is made. They return 0, -EBADMSG or -ENOMEM. */
int messages_inherit(struct message_context *context, struct saved_reader *row);
int actor_inherit(struct message_context *context, struct saved_reader *row);
/* Once all actors are made again: the others have gone for good. */
void actors_settle(struct message_context *context);
