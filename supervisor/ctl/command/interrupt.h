/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * SIGINT and SIGTERM for verbs that have something to finish: the first is only noted, the second
 * ends the program at once, with EXIT_INTERRUPTED.
 */

#include <stdbool.h>

/* From now on; waits (EINTR) end with the first. What came before is forgotten. */
void interrupt_catch(void);

/* Whether the first has come. */
bool interrupt_seen(void);
