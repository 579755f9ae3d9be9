/* SPDX-License-Identifier: MIT */
#pragma once

/* Tables of JSON objects. */

#include "supervisor/ctl/show/pattern.h"

#define LIST_COLUMNS_MAX 10

struct list_column {
    const char *title;
    const char *pattern; /* of a cell */
    enum {
        LIST_LEFT,
        LIST_RIGHT, /* aligned */
        LIST_NOTE,  /* not a column, but a line below the row, if not empty; comes last */
    } place;
};

/*
 * Prints a row for each item. Columns are as wide as their contents, two spaces apart; the last one
 * gets the remaining width, and empty ones take no room. `columns` ends with an empty one. There
 * are no titles if the first column has none.
 */
void list_print(const struct terminal *terminal, const char *indent,
                const struct list_column *columns, const json_t *items, usec_t now);
