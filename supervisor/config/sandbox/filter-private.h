/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between filter.c, filter-arguments.c and filter-calls.c. */

#include <seccomp.h>
#include <stdint.h>

/* How settings begin. */
#define FILTER_ARGUMENTS "arguments "
#define FILTER_CALLS     "calls "

/* Begins a filter, which the caller releases, even on error. Returns 0 or -errno. */
int filter_start(scmp_filter_ctx *context, uint32_t fallback);

/* Begin a filter, and add the rules that the settings ask for. Return 0 or -errno. */
int filter_add_arguments(scmp_filter_ctx *context, const char *settings);
int filter_add_calls(scmp_filter_ctx *context, const char *settings);
