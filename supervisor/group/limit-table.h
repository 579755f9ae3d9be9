/* SPDX-License-Identifier: MIT */
#pragma once

/* The limits that files describe (NAME.limit), which groups use. */

#include "shared/base/list.h"
#include "supervisor/config/config.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/group/cell/cell-limit-gate.h"
#include <stdbool.h>

struct loop;

/* It is freed once no file describes it and no group uses it. */
struct named_limit {
    struct limit limit;
    struct list link;          /* in limit_table.limits */
    struct config_bounds file; /* what its file says */
    bool described;
    char name[];
};

struct limit_table {
    struct loop *loop;
    struct list limits; /* struct named_limit.link, by name */
};

void limit_table_init(struct limit_table *table, struct loop *loop);
void limit_table_deinit(struct limit_table *table); /* no group uses one; {0} is allowed */

/* Takes over the limits of a configuration. Appends the files' names to the lists (NULL = not
 * wanted). Returns 0 or -ENOMEM. */
int limit_table_take(struct limit_table *table, const struct config *config, config_strv *added,
                     config_strv *changed, config_strv *removed);

/* Returns NULL if there is none. */
struct named_limit *limit_table_find(const struct limit_table *table, const char *name);
/* Makes the limits that the group is to use, if no file describes them: such a limit holds all
 * jobs. Returns 0 or -ENOMEM. */
int limit_table_reserve(struct limit_table *table, const struct config_group *config);
