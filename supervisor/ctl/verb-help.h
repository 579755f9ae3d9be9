/* SPDX-License-Identifier: MIT */
#pragma once

/* --help, on standard output. */

struct verb;

void help_all(void);
void help_verb(const struct verb *verb);
