/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What message/ hands over in an upgrade. The tables and functions of a kind are beside the kind:
 * in actor-save.c, actor-name.c, monitor.c, envelope.c, ask/, schedule/, save-exchange.c and the
 * files *-save.c. upgrade/kinds.c says when each is called.
 *
 * An actor that is made again has the reference that it had, which workers, clients and saved rows
 * continue using. Rows of other kinds find it with actor_get() once the groups, the workers and the
 * clients are there. A reference of an actor that has ended, or that is not made again, never
 * finds one: messages that wait for it become dead letters, and the rest ends.
 */

#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/succession/record.h"
#include "supervisor/succession/waiting-room.h"
#include <stdbool.h>
#include <stdint.h>

struct death_log;
struct message_context;

#define ACTOR_ROW        "actor"
#define STANDBY_ROW      "standby" /* in the waiting room only */
#define DEAD_LETTER_ROW  "dead-letter"
#define MAIL_ROW         "mail"
#define SUBSCRIPTION_ROW "subscription"

/* Without what is of any size. MESSAGES: ids and references that must not be used again. */
extern const struct record MESSAGES_RECORD, ACTOR_RECORD, ACTOR_NAME_RECORD, MONITOR_RECORD,
    ENVELOPE_RECORD, ASK_RECORD, SCHEDULE_RECORD, INBOX_RECORD, EXCHANGE_RECORD,
    SUBSCRIPTION_RECORD, DEAD_LETTER_RECORD;

/* Calls `save` for all actors. */
void actors_save_each(const struct message_context *context, struct saver *saver,
                      void (*save)(const struct actor *actor, struct saver *saver));

/* Save what belongs to an actor, in its order: the actor itself (struct actor_row), the names that
 * it has registered, its observers, its open asks, the timers for it, its inbox and its mailbox, an
 * exchange with its subscriptions. */
void actor_save(const struct actor *actor, struct saver *saver);
void actor_names_save(const struct actor *actor, struct saver *saver);
void monitors_save(const struct actor *monitored, struct saver *saver);
void asks_save(const struct actor *asker, struct saver *saver);
void schedules_save(const struct actor *to, struct saver *saver);
void delivery_save(const struct actor *actor, struct saver *saver);
void exchange_save(const struct actor *actor, struct saver *saver);
void dead_letters_save(const struct dead_letters *letters, struct saver *saver);

/* Restore a row. They return 0, also if the row's actor is gone, -EBADMSG (the row is damaged),
 * -ENOMEM, or -ENOSPC (beyond a bound). The configuration has the last word on names and exchanges
 * that it declares. An observer is notified once, whether the end comes before, during or after the
 * upgrade. */
int messages_inherit(struct message_context *context, struct saved_reader *row);
int actor_name_restore_row(struct message_context *context, struct saved_reader *row);
int monitor_restore_row(struct message_context *context, struct saved_reader *row);
int ask_restore_row(struct message_context *context, struct saved_reader *row);
int schedule_restore_row(struct message_context *context, struct saved_reader *row);
int inbox_restore(struct message_context *context, struct saved_reader *row);
int mail_restore(struct message_context *context, struct saved_reader *row);
int exchange_restore_row(struct message_context *context, struct saved_reader *row);
int subscription_restore_row(struct message_context *context, struct saved_reader *row);

/* Once all actors are made again: the others have ended. */
void actors_settle(struct message_context *context);

/* ---- actors, until they are made again ---- */

struct actor_row {
    const char *name; /* a standby's: that of its place */
    uint64_t reference;
    bool standby;
    bool needed;   /* something waits for it: it is to be made if it is not there */
    bool exchange; /* a group of its name is another actor */
    struct actor_counters counters;
};

/* Reads a row, whose name is borrowed. Returns 0 or -EBADMSG. */
int actor_row_read(struct saved_reader *row, struct actor_row *ret);
/* Has the row wait for its actor. Returns 0, -EBADMSG or -ENOMEM. */
int actor_row_restore(struct message_context *context, struct saved_reader *row);
/* Takes the row of the actor of this name, of a standby only if that alone is left. Returns whether
 * there is one; `ret->name` is not valid. */
bool actor_row_take(struct waiting_room *room, const char *name, struct actor_row *ret);

/* ---- messages and answers as fields of rows; the payload is the row's ---- */

/* Makes the message again, in no list and owned by the caller. Returns 0, -EBADMSG or -ENOMEM. */
int envelope_get(struct saved_reader *row, struct envelope **ret);
/* Write and read a topic, which then points into the row. Returns 0 or -EBADMSG. */
void topic_put(struct saved_writer *row, const struct topic *topic);
int topic_get(struct saved_reader *row, struct topic *ret);

/* ---- dead letters ---- */

/* The disk has those of durable jobs with their payloads, but without their deaths: their rows wait
 * until they are read from disk. `deaths` has been restored. Returns 0, -EBADMSG or -ENOMEM. */
int dead_letter_restore_row(struct dead_letters *letters, struct death_log *deaths,
                            struct waiting_room *room, struct saved_reader *row);
/* Adds the letter that waits, if it has the row and the id of `like`, which was read from disk, and
 * takes over the payload. Returns false, and leaves the payload to the caller, if there is none. */
bool dead_letter_claim(struct dead_letters *letters, struct death_log *deaths,
                       struct waiting_room *room, const struct dead_letter *like,
                       struct payload *payload);
