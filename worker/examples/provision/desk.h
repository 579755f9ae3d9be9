/* SPDX-License-Identifier: MIT */
#pragma once

/* The desk of a person who decides: a FIFO that gets a line, "no REASON" or anything else. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Waits for a line. Returns 0 with the decision, and with a reason if it is no; or -errno of the
 * FIFO. Reads no further than the line, since others may wait at the same desk.
 */
int desk_decide(const char *path, bool *ret_yes, char *reason, size_t reason_size);
