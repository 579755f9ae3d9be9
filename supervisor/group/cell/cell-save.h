/* SPDX-License-Identifier: MIT */
#pragma once

/* Cells across an upgrade: what was asked of each, and what status shows of it. */

#include "supervisor/group/cell/cell.h"
#include "supervisor/succession/saved-row.h"

/* Appends the fields of a cell to a row. */
void cell_put(struct saved_writer *row, const struct cell *cell);
/* Reads them into a new cell. Returns 0, -EBADMSG or -ENOMEM. */
int cell_get(struct saved_reader *row, struct cell *cell);

/* Write and read what is to follow once the cell has been resumed. Damage shows in the row. */
void cell_put_plan(struct saved_writer *row, const struct cell *cell);
void cell_get_plan(struct saved_reader *row, struct cell *cell);
