/* SPDX-License-Identifier: MIT */
#pragma once

/* Lists that the supervisor answers page by page, put together. */

#include <jansson.h>
#include <stdint.h>

struct invocation;

/* Called after each page: may change `items`, all that there are so far. NULL = nobody. */
typedef void (*pages_fn)(json_t *items, void *userdata);

/*
 * Calls `method` with `parameters` (taken over) until there is no further page, or `limit` items
 * are there (0 = all). `*ret`, the caller's, is the last answer with the items of all in its member
 * `array`, and with "next" if there may be more. An enum exit_status.
 */
int pages_collect(struct invocation *invocation, const char *method, json_t *parameters,
                  const char *array, int64_t limit, pages_fn fn, void *userdata, json_t **ret);

/* "the first 20; there are more", unless the answer of pages_collect() is complete. */
void pages_remark(const struct invocation *invocation, const json_t *reply, const char *array);
