/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads the operands of a verb as its usage line has them: "GROUP[/CELL] N", "ID... | --all GROUP".
 */

#include <stdbool.h>
#include <stddef.h>

#define USAGE_WORD_MAX 128

/* Whether the command line has this option. */
typedef bool (*usage_given_fn)(const char *option, void *userdata);

/*
 * Stores what stands at that position, the first being 0, without brackets and dots: "TARGET",
 * "list|show", "GROUP/CELL". Of alternatives, the first counts whose options are all given. Returns
 * false if there is nothing.
 */
bool usage_at(const char *usage, size_t position, usage_given_fn given, void *userdata,
              char ret[USAGE_WORD_MAX]);
