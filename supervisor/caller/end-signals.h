/* SPDX-License-Identifier: MIT */
#pragma once

/* The signals that end a program which runs until it is stopped: SIGTERM and SIGINT. */

/* Blocks them, and ignores SIGPIPE. Returns a descriptor, owned by the caller, that becomes
 * readable when the program must end, or -errno. */
int end_signals_open(void);
