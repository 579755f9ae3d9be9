/* SPDX-License-Identifier: MIT */
#pragma once

/* What status shows of cells, across an upgrade. */

#include "supervisor/group/cell/cell.h"
#include "supervisor/succession/saved-row.h"

/* Appends the fields of a cell to a row. */
void cell_put(struct saved_writer *row, const struct cell *cell);
/* Reads them into a new cell. Returns 0 or -EBADMSG. */
int cell_get(struct saved_reader *row, struct cell *cell);
