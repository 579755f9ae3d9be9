/* SPDX-License-Identifier: MIT */
#pragma once

/* Cells across an upgrade: what was asked of each, and what status shows of it. */

#include "supervisor/group/cell/cell.h"
#include "supervisor/saved/saved-row.h"

void cell_put(struct saved_writer *row, const struct cell *cell);
/* The cell is new. Returns 0, -EBADMSG or -ENOMEM. */
int cell_get(struct saved_reader *row, struct cell *cell);

/* What is to follow once the cell has been resumed. */
void cell_put_plan(struct saved_writer *row, const struct cell *cell);
void cell_get_plan(struct saved_reader *row, struct cell *cell);
