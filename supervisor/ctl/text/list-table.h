/* SPDX-License-Identifier: MIT */
#pragma once

/* Prints an array of objects as a table whose columns are described by data. */

#include "shared/base/clock.h"
#include "supervisor/ctl/text/table.h"
#include <jansson.h>

struct list_column {
    const char *title;
    const char *member;
    /* Adds the cell of one item. */
    void (*add)(struct table *table, const json_t *item, const char *member);
    bool right; /* aligned to the right */
};

/*
 * `columns` ends with an empty one. There are no titles if the first column has none. `now` is the
 * wall clock.
 */
void list_print(const struct terminal *terminal, const char *indent,
                const struct list_column *columns, const json_t *items, usec_t now);

/* Ways to add the member: "" if it is absent. */
void list_text(struct table *table, const json_t *item, const char *member);
void list_number(struct table *table, const json_t *item, const char *member);
void list_span(struct table *table, const json_t *item, const char *member);
/* As a number with commas, 0 if it is absent. */
void list_count(struct table *table, const json_t *item, const char *member);
/* As a time in the past ("3s ago"), or in the future ("3s"). */
void list_ago(struct table *table, const json_t *item, const char *member);
void list_in(struct table *table, const json_t *item, const char *member);
