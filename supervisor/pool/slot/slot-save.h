/* SPDX-License-Identifier: MIT */
#pragma once

/* What status shows of a slot and its kept state does not have, across an upgrade. */

#include "supervisor/pool/slot/slot.h"
#include "supervisor/succession/saved-row.h"

struct death_log;

void slot_put(struct saved_writer *row, const struct slot *slot);
/* The slot has been resumed, and the log of deaths restored. */
void slot_get(struct saved_reader *row, struct slot *slot, const struct death_log *deaths);
