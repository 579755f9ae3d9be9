/* SPDX-License-Identifier: MIT */
#pragma once

/* Open asks of workers and clients across an upgrade: they get their replies, or time out when they
 * would have. Those over the control socket end with their calls. A handle that has been used finds
 * nothing. */

#include "supervisor/succession/record.h"

struct message_context;

#define ASK_TABLE_ROW "asks" /* the handles that have been used */
#define ASK_ROW       "ask"
extern const struct record ASK_RECORD; /* but the asker, the time-out and the recipients */

/* Returns 0 or -errno of the saver. */
int asks_save(const struct message_context *context, struct saver *saver);

/* In this order, once all actors are there. An ask whose worker or client is gone ends. They return
 * 0, -EBADMSG or -ENOMEM. */
int ask_table_restore(struct message_context *context, struct saved_reader *row);
int ask_restore_row(struct message_context *context, struct saved_reader *row);
