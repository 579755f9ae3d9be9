/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between filter.c, filter-arguments.c and filter-calls.c. */

#include "supervisor/config/config-group.h"
#include "supervisor/keeper/sandbox.h"
#include <seccomp.h>
#include <stdio.h>

/* How the two parts of the settings begin. */
#define FILTER_ARGUMENTS "arguments "
#define FILTER_CALLS     "calls "

/* Write their part of the settings, or nothing if the group has no keys for it. */
void filter_put_arguments(FILE *file, const struct config_group *group);
void filter_put_calls(FILE *file, const struct config_group *group);

/* Adds the rules that this part asks for, and sets `*ret_rest` to what follows it. Returns 0 or
 * -errno. */
int filter_add_arguments(scmp_filter_ctx context, const char *settings, const char **ret_rest);

/* Makes a filter that looks at no arguments. Returns 0 or -errno. */
int filter_compile_calls(const char *settings, struct sandbox_filter *ret);
