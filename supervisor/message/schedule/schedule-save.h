/* SPDX-License-Identifier: MIT */
#pragma once

/* Timers across an upgrade: each keeps its id and goes off when it would have. Periodic ones keep
 * their beat. */

#include "supervisor/succession/record.h"

struct actor;
struct message_context;

#define SCHEDULE_ROW "timer"
extern const struct record SCHEDULE_RECORD;

/* Saves the timers for an actor. Returns 0 or -errno of the saver. */
int schedules_save(const struct actor *to, struct saver *saver);
/* Once all actors are there. Returns 0, -EBADMSG, -ENOENT (its recipient is gone, and so is the
 * timer), or -ENOMEM. */
int schedule_restore_row(struct message_context *context, struct saved_reader *row);
