/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads files of KEY=VALUE lines for EnvironmentFile=, in a part of the shell's syntax: comments (#
 * and ; at the beginning of a line), '…' and "…" that may span lines, a backslash before a
 * character or at the end of a continued line. Lines may end with "\r\n". Nothing is expanded.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>

/* Whether `size` characters are the name of an environment variable: [A-Za-z_][A-Za-z0-9_]*. */
bool envfile_name_valid(const char *name, size_t size);

/* Called for each malformed line. Returns 0 to continue, or -errno. */
typedef int (*envfile_problem_fn)(void *userdata, unsigned line, const char *text);

/* Merges the text of a file into `environment`. Returns 0, -ENOMEM, or what `problem` returned. */
int envfile_parse(const char *text, size_t size, struct config_strings *environment,
                  envfile_problem_fn problem, void *userdata);
