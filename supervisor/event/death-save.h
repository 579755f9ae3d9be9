/* SPDX-License-Identifier: MIT */
#pragma once

/* Death reports across an upgrade. */

#include "supervisor/event/death.h"
#include "supervisor/succession/record.h"

#define DEATH_ROW "death"
extern const struct record DEATH_RECORD; /* without what is of any size */

/* Saves the log, a row of that kind for each report. Returns 0 or -errno of the saver. */
int death_log_save(const struct death_log *log, struct saver *saver);
/* Adds the report of a row to the log, under its serial. Returns 0, -EBADMSG or -ENOMEM. */
int death_log_restore(struct death_log *log, struct saved_reader *row);

/* Write and read the reference to a report that somebody holds: the report itself, if it is not in
 * the log any more. `death` NULL = none. The reader returns a reference of the caller's; NULL =
 * none, damaged, or out of memory. */
void death_put(struct saved_writer *row, const struct death *death);
struct death *death_get(struct saved_reader *row, const struct death_log *log);
