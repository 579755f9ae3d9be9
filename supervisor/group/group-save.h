/* SPDX-License-Identifier: MIT */
#pragma once

/* What status shows of groups, their cells and slots, across an upgrade. */

#include "supervisor/succession/record.h"

struct group_context;

/* Saves all groups, in rows of the kinds below. */
void groups_save(const struct group_context *context, struct saver *saver);

extern const struct record GROUP_RECORD, CELL_RECORD;

/* Restore a row. Rows of groups that the configuration no longer has are skipped. Return 0,
 * -EBADMSG or -ENOMEM. */
#define GROUP_ROW "group"
#define CELL_ROW  "cell"
/* These two before the groups are resumed, */
int group_restore_row(const struct group_context *context, struct saved_reader *row);
int cell_restore_row(const struct group_context *context, struct saved_reader *row);
#define SLOT_ROW "slot"
/* and this one afterwards. */
int slot_restore_row(const struct group_context *context, struct saved_reader *row);
