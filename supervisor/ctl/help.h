/* SPDX-License-Identifier: MIT */
#pragma once

/* --help, on standard output. */

#include <stddef.h>

struct verb;

void help_all(const struct verb *verbs, size_t n_verbs);
void help_verb(const struct verb *verb);
