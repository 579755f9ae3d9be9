/* SPDX-License-Identifier: MIT */
#pragma once

/* Names that actors have registered, across an upgrade. */

#include "supervisor/succession/saved-row.h"

struct message_context;

#define ACTOR_NAME_ROW "name"

/* Returns 0 or -errno of the saver. */
int actor_names_save(const struct message_context *context, struct saver *saver);
/* Once all actors are there. As after a reload, an actor loses a name that the configuration
 * declares. Returns 0, -EBADMSG or -ENOMEM. */
int actor_name_restore_row(struct message_context *context, struct saved_reader *row);
