/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Makes the program of a filter that looks at the numbers of calls only. libseccomp's tests
 * for each call; this one, for each run of neighbours that are treated alike. The kernel's work to
 * load it, at each start of a process, grows with the size.
 */

#include "supervisor/keeper/sandbox.h"

/* `actions` has SYSCALLS_MAX; calls beyond get the last one. Calls of another architecture kill.
 * free(3) ends the code. Returns 0 or -errno. */
int filter_program(const uint32_t *actions, struct sandbox_filter *ret);
