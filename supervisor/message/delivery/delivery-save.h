/* SPDX-License-Identifier: MIT */
#pragma once

/* Waiting messages, answers and stashes across an upgrade, and what is known of the inboxes. Those
 * in the rings stay there: a worker or client handles them whoever supervises it. */

#include "supervisor/succession/record.h"

struct actor;
struct message_context;

#define INBOX_ROW "inbox"
#define MAIL_ROW  "mail"
extern const struct record INBOX_RECORD;

/* Saves both of an actor, messages in their order. Returns 0 or -errno of the saver. */
int delivery_save(const struct actor *actor, struct saver *saver);

/* These come once all actors and asks are there, and before the loop runs. A message whose actor is
 * gone becomes a dead letter. They return 0, -EBADMSG, -ENOENT or -ENOMEM. */
int inbox_restore(struct message_context *context, struct saved_reader *row);
int mail_restore(struct message_context *context, struct saved_reader *row);
