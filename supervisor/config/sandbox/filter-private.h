/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between filter.c, filter-arguments.c and filter-calls.c. */

#include "supervisor/keeper/sandbox.h"
#include <seccomp.h>
#include <stdint.h>

/* How settings begin. */
#define FILTER_ARGUMENTS "arguments "
#define FILTER_CALLS     "calls "

/* Begins a filter, which the caller releases, even on error. Returns 0 or -errno. */
int filter_start(scmp_filter_ctx *context, uint32_t fallback);

/* Begins a filter, and adds the rules that the settings ask for. Returns 0 or -errno. */
int filter_add_arguments(scmp_filter_ctx *context, const char *settings);

/* Makes a filter that looks at no arguments. Returns 0 or -errno. */
int filter_compile_calls(const char *settings, struct sandbox_filter *ret);
