/* SPDX-License-Identifier: MIT */
#pragma once

/* Dead letters across an upgrade. The disk has those of durable jobs with their payloads, but
 * without their deaths: their rows wait until they are read from disk. */

#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/succession/record.h"
#include "supervisor/succession/waiting-room.h"

#define DEAD_LETTER_ROW "dead-letter"
extern const struct record DEAD_LETTER_RECORD;

/* Saves the letters in rows of this kind. Returns 0 or -errno of the saver. */
int dead_letters_save(const struct dead_letters *letters, struct saver *saver);

/* Adds the letter of a row under its id, or has it wait; `deaths` has been restored. Returns 0,
 * -EBADMSG, -EEXIST or -ENOMEM. */
int dead_letter_restore_row(struct dead_letters *letters, const struct death_log *deaths,
                            struct waiting_room *room, struct saved_reader *row);
/* Adds the letter that waits, if it has the row and the id of `like`, which was read from disk, and
 * takes over the payload. Returns false, and leaves the payload to the caller, if there is none. */
bool dead_letter_claim(struct dead_letters *letters, const struct death_log *deaths,
                       struct waiting_room *room, const struct dead_letter *like,
                       struct payload *payload);
