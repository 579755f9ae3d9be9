/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints replies on standard output. */

#include <jansson.h>

struct invocation;

/*
 * Prints a JSON document: one line that is flushed at once if `invocation->lines` is set, otherwise
 * indented on a terminal. Returns an exit status.
 */
int output_json(const struct invocation *invocation, const json_t *document);

/* Prints a reply: with --json as it is, otherwise with `show` (NULL = nothing). The same result. */
typedef void (*output_fn)(const struct invocation *invocation, const json_t *reply);
int output_reply(const struct invocation *invocation, const json_t *reply, output_fn show);

/* Writes JSON without a newline, safe for terminals; `flags` as for json_dumpf(). 0 or -1. */
int output_write(const json_t *document, size_t flags);
