/* SPDX-License-Identifier: MIT */
#pragma once

/* Where a person decides: a FIFO into which a line is written, "no REASON" or anything else. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Waits for a line. 0 and whether it is a yes, with the reason if not; -errno of the FIFO. Reads no
 * further than the line: others may wait at the same desk.
 */
int desk_decide(const char *path, bool *ret_yes, char *reason, size_t reason_size);
