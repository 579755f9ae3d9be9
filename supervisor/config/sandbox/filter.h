/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Compiles the keys of [Sandbox] that seccomp(2) enforces. Each filter also kills a process that
 * makes system calls of another architecture, in which the same calls have other numbers.
 */

#include "supervisor/config/config-group.h"
#include "supervisor/keeper/sandbox.h"

/* Whether a group has keys for the filter. */
bool filter_restricts(const struct config_group *group);      /* of arguments */
bool filter_lists_syscalls(const struct config_group *group); /* of calls */

/* Make a filter; free(3) ends its code. Return 0 or -errno. */
int filter_compile_restrictions(const struct config_group *group, struct sandbox_filter *ret);
int filter_compile_syscalls(const struct config_group *group, struct sandbox_filter *ret);
