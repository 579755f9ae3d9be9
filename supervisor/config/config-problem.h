/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects the problems of a configuration. */

#include "supervisor/config/config.h"
#include <stdarg.h>

/*
 * Adds a problem; those of one file stay together, in the order of their lines. Control characters
 * in the text become '?', a long text is cut. 0 or -ENOMEM.
 */
int config_problem_add(struct config_problems *problems, const char *path, unsigned line,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
int config_problem_add_list(struct config_problems *problems, const char *path, unsigned line,
                            const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));

/* Moves all of them to `to`, to those of the same file. 0 or -ENOMEM (then nothing is moved). */
int config_problems_move(struct config_problems *to, struct config_problems *from);
