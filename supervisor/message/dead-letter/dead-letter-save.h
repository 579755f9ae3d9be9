/* SPDX-License-Identifier: MIT */
#pragma once

/* Dead letters across an upgrade. Those of durable jobs are on disk, which has their payloads, but
 * not all else of them: their rows here go without payloads. */

#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/succession/record.h"

#define DEAD_LETTER_ROW       "dead-letter"
#define DEAD_LETTER_TALLY_ROW "dead-letter-tally"
extern const struct record DEAD_LETTER_RECORD, DEAD_LETTER_TALLY_RECORD;

/* Saves letters and counts in rows of these kinds. Returns 0 or -errno of the saver. */
int dead_letters_save(const struct dead_letters *letters, struct saver *saver);

/* Adds the letter of a row under its id; `deaths` has been restored. Returns 0, -EBADMSG or
 * -ENOMEM. */
int dead_letter_restore_row(struct dead_letters *letters, const struct death_log *deaths,
                            struct saved_reader *row);
/* Restores the counts, after the letters. Returns 0 or -EBADMSG. */
int dead_letter_tally_restore_row(struct dead_letters *letters, struct saved_reader *row);
