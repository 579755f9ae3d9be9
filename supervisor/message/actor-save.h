/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Actors across an upgrade, with the names that they have registered and their monitors. An actor
 * that is made again has the reference that it had, so rows of other kinds name actors by
 * reference, and find them with actor_get() once the groups, the workers and the clients are there.
 * A reference of an actor that has ended, or that is not made again, finds nothing for good.
 */

#include "supervisor/succession/record.h"

struct actor;
struct message_context;

#define MESSAGES_ROW "messages" /* ids and references that must not be used again */

extern const struct record MESSAGES_RECORD;

/* Saves an actor as struct actor_row (inheritance.h). Returns 0 or -errno of the saver. */
int actor_save(const struct actor *actor, struct saver *saver);

/* Comes before any actor is made, as do those of inheritance.h. Returns 0 or -EBADMSG. */
int messages_inherit(struct message_context *context, struct saved_reader *row);
/* Once all actors are made again: the others have ended. */
void actors_settle(struct message_context *context);

/* Calls `save` for all actors, or until it returns another value than 0, which is returned. */
int actors_save_each(const struct message_context *context, struct saver *saver,
                     int (*save)(const struct actor *actor, struct saver *saver));

#define ACTOR_NAME_ROW "name"
#define MONITOR_ROW    "monitor"
/* Save an actor's registered names and its observers. Return 0 or -errno of the saver. */
int actor_names_save(const struct actor *actor, struct saver *saver);
int monitors_save(const struct actor *monitored, struct saver *saver);
/* Once all actors are there. As after a reload, an actor loses a name that the configuration
 * declares. Returns 0, -EBADMSG or -ENOMEM. */
int actor_name_restore_row(struct message_context *context, struct saved_reader *row);
/* Once the answers that waited are there. An observer is notified once, whether the end comes
 * before, during or after the upgrade; a monitor whose worker or client is gone ends. Returns 0,
 * -EBADMSG or -ENOMEM. */
int monitor_restore_row(struct message_context *context, struct saved_reader *row);
