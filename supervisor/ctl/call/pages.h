/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects all pages of a list. */

#include <jansson.h>
#include <stdint.h>

struct invocation;

/* Called after each page with all items so far, which it may change. */
typedef void (*pages_fn)(json_t *items, void *userdata);

/*
 * Calls `method` with `parameters`, of which it takes ownership, until there is no further page or
 * `limit` items have been read (0 = no limit). The caller owns `*ret`: the last reply, with all
 * items in its member `array`, and with "next" if there may be more. `each` may be NULL. Returns an
 * enum exit_status.
 */
int pages_collect(struct invocation *invocation, const char *method, json_t *parameters,
                  const char *array, int64_t limit, pages_fn fn, void *userdata, json_t **ret);

/* Prints "the first 20; there are more" unless the result of pages_collect() is complete. */
void pages_remark(const struct invocation *invocation, const json_t *reply, const char *array);
