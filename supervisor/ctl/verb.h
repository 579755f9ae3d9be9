/* SPDX-License-Identifier: MIT */
#pragma once

/* All verbs, in the order in which the help lists them. */

#include "supervisor/ctl/command/invocation.h"
#include <stddef.h>

extern const struct verb verb_table[];
extern const size_t n_verbs;

/* Prints an error and returns NULL if there is no verb of that name. */
const struct verb *verb_find(const char *name);

/* Prints the help for all verbs, or for one, on standard output. */
void help_all(void);
void help_verb(const struct verb *verb);
