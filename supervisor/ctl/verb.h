/* SPDX-License-Identifier: MIT */
#pragma once

/* All verbs, in the order in which the help lists them. */

#include "supervisor/ctl/command/invocation.h"
#include <stddef.h>

extern const struct verb verb_table[];
extern const size_t n_verbs;

/* NULL after a complaint, if there is none of that name. */
const struct verb *verb_find(const char *name);
