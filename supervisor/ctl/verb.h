/* SPDX-License-Identifier: MIT */
#pragma once

/* All verbs, in the order in which the help lists them. */

#include "supervisor/ctl/command/invocation.h"
#include <stddef.h>

extern const struct verb verb_table[];
extern const size_t n_verbs;

/* Prints an error and returns NULL if there is no verb of that name. */
const struct verb *verb_find(const char *name);

/* Parses a command line, whose operands `operands` has room for. Prints errors and returns an exit
 * status. */
int verb_parse(struct invocation *invocation, struct arguments *arguments, const char **operands);

/* Prints the help for a verb, or for all (NULL), on standard output. */
void verb_print_help(const struct verb *verb);
