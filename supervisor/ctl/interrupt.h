/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * SIGINT and SIGTERM for verbs that have something to finish: the first is only noted, the second
 * ends the program at once, with EXIT_INTERRUPTED.
 */

#include <stdbool.h>

void interrupt_catch(void);
bool interrupt_seen(void);
