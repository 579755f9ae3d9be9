/* SPDX-License-Identifier: MIT */
#pragma once

/* What all verbs that list something have in common. */

#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/list.h"

struct listing {
    const char *method;
    const char *array;                 /* the member of the reply that has the items */
    const char *none;                  /* printed if there are no items */
    const struct list_column *columns; /* of a table; or `show`, if NULL */
    void (*show)(const struct terminal *terminal, const json_t *item, usec_t now);
    output_fn remark; /* printed below, unless --quiet; NULL = nothing */
};

/*
 * Reads all pages, `limit` items at most (0 = no limit), and prints them. Takes ownership of
 * `parameters`. Returns an exit status.
 */
int listing_run(struct invocation *invocation, const struct listing *listing, json_t *parameters,
                int64_t limit);
