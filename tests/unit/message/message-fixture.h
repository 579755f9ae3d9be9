/* SPDX-License-Identifier: MIT */
#pragma once

/* A supervisor's message contexts, and actors without groups. */

#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "tests/unit/succession/memory-saver.h"

void set_up_messages(struct message_context *context);
void tear_down_messages(struct message_context *context);

/* An actor without rings: every message waits in its mailbox. */
extern const struct actor_class INBOX;

struct actor *make_actor(struct message_context *context, const struct actor_class *class,
                         const char *name);

/* Without a key. */
struct topic topic_of(const char *type);

/* ---- an upgrade ---- */

/* The contexts of the first supervisor, and of its successor. */
extern struct message_context before, after;
/* What the first one hands over. */
extern struct memory_saver saver;

void set_up_upgrade(void);
void tear_down_upgrade(void);

typedef int (*restore_fn)(struct message_context *context, struct saved_reader *row);

/* Restores the rows of that kind, up to one that is refused. Returns what `fn` returned last. */
int restore(const char *kind, restore_fn fn);

/* Restores a row in every damaged form: it is refused, or does no harm. */
void restore_damaged(size_t i, restore_fn fn);
