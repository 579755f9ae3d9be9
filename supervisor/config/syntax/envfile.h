/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Files of KEY=VALUE lines as EnvironmentFile= reads them: a small part of the shell's syntax.
 * Comments begin with # or ; at the beginning of a line; '…' and "…" may span lines; a backslash
 * keeps the next character as it is and at the end of a line continues it. Nothing is expanded.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>

/* Whether `size` characters are the name of an environment variable: [A-Za-z_][A-Za-z0-9_]*. */
bool envfile_name_valid(const char *name, size_t size);

/* Puts KEY=VALUE into `environment`: in the place of an earlier value of KEY, else at the end. 0,
 * -ENOMEM. */
int envfile_set(config_strv *environment, const char *assignment);

/* Called for each malformed line. Returns 0 to go on, or -errno. */
typedef int (*envfile_problem_fn)(void *userdata, unsigned line, const char *text);

/* Merges the `size` bytes of a file into `environment`. 0, -ENOMEM, or what `problem` returned. */
int envfile_parse(const char *text, size_t size, config_strv *environment,
                  envfile_problem_fn problem, void *userdata);
