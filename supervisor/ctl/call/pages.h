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
 * items in its member `array`, and with "next" if there may be more. `fn` may be NULL. Returns an
 * exit status.
 */
int pages_collect(struct invocation *invocation, const char *method, json_t *parameters,
                  const char *array, int64_t limit, pages_fn fn, void *userdata, json_t **ret);

/* ---- status ---- */

struct invocation;

/*
 * Adds the groups of one reply of GetStatus to those of earlier replies. A group or cell that
 * continues from the previous reply gets further cells and workers, and its newer numbers. `part`
 * is borrowed. Returns 0 or -ENOMEM.
 */
int parts_add_groups(json_t *groups, const json_t *part);

/*
 * Calls GetStatus for `target` (NULL = all), or GetMetrics. The caller owns `*ret`, the whole
 * reply:
 * {"groups": …}. Return an exit status.
 */
int parts_of_status(struct invocation *invocation, const char *target, json_t **ret);
int parts_of_metrics(struct invocation *invocation, json_t **ret);
