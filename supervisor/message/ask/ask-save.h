/* SPDX-License-Identifier: MIT */
#pragma once

/* Open asks of workers and clients across an upgrade: they get their replies, or time out when they
 * would have. Those over the control socket end with their calls. */

#include "supervisor/succession/record.h"

struct actor;
struct message_context;

#define ASK_ROW "ask"
extern const struct record ASK_RECORD; /* but the asker and the time-out */

/* Saves those of one asker. Returns 0 or -errno of the saver. */
int asks_save(const struct actor *asker, struct saver *saver);

/* Once all actors are there. An ask whose worker or client is gone ends. Returns 0, -EBADMSG or
 * -ENOMEM. */
int ask_restore_row(struct message_context *context, struct saved_reader *row);
