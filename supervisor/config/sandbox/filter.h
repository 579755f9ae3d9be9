/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Compiles the keys of [Sandbox] that seccomp(2) enforces to one filter. It also kills a process
 * that makes system calls of another architecture, in which the same calls have other numbers.
 */

#include "supervisor/config/config-group.h"
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/keeper/sandbox.h"
#include <stdio.h>

/* The settings of a filter are a text without line breaks; equal settings make equal filters. Sets
 * `*ret`, freed by the caller, to NULL if the group has no keys for a filter. Returns 0 or
 * -ENOMEM. */
int filter_settings_of(const struct config_group *group, char **ret);

/* The calls of SystemCallLog=, which the filter lets the kernel log. Returns 0 or -ENOMEM. */
int filter_logged_calls(const struct config_group *group, struct call_set *ret);

/* Makes a filter; free(3) ends its code. Takes milliseconds. Returns 0 or -errno. */
int filter_compile(const char *settings, struct sandbox_filter *ret);

/*
 * Makes one program of two, as the kernel's work to load one hardly depends on its size: where the
 * first one allows a call, the second one decides. Where the first one logs a call, that happens in
 * another copy of the second one, which logs what it would allow. free(3) ends the code. Returns 0,
 * -ENOMEM or -E2BIG.
 */
int filter_join(const struct sandbox_filter *calls, const struct sandbox_filter *arguments,
                struct sandbox_filter *ret);

/* ---- filter-calls.c ---- */

/* How its part of the settings begins. */
#define FILTER_CALLS "calls "

/* Writes that part, or nothing if the group has no keys for it. */
void filter_put_calls(FILE *file, const struct config_group *group);
/* Makes a filter that looks at no arguments. Returns 0 or -errno. */
int filter_compile_calls(const char *settings, struct sandbox_filter *ret);

/*
 * Makes the program of a filter that looks at the numbers of calls only. libseccomp's tests for
 * each call; this one, for each run of neighbours that are treated alike. The kernel's work to load
 * it, at each start of a process, grows with the size. `actions` has SYSCALLS_MAX; calls beyond get
 * the last one. Calls of another architecture kill. free(3) ends the code. Returns 0 or -errno.
 */
int filter_program(const uint32_t *actions, struct sandbox_filter *ret);
