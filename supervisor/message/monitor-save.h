/* SPDX-License-Identifier: MIT */
#pragma once

/* Monitors of workers and clients across an upgrade. An observer is notified once, whether the end
 * comes before, during or after the upgrade. */

#include "supervisor/succession/saved-row.h"

struct message_context;

#define MONITOR_ROW "monitor"

/* Returns 0 or -errno of the saver. */
int monitors_save(const struct message_context *context, struct saver *saver);
/* Once all actors are there, and the answers that waited. The observer of an actor that is gone is
 * notified; a monitor whose worker or client is gone ends. Returns 0, -EBADMSG or -ENOMEM. */
int monitor_restore_row(struct message_context *context, struct saved_reader *row);
