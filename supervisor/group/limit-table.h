/* SPDX-License-Identifier: MIT */
#pragma once

/* The limits that files describe (NAME.limit), which groups use. */

#include "shared/base/list.h"
#include "supervisor/config/config.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/group/cell/cell-limit-gate.h"
#include "supervisor/store/limit-rows.h"
#include "supervisor/store/store.h"
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

/* A change of a named limit, or of a group's own, that was made at run time. */
struct limit_setting {
    struct list link; /* in limit_table.settings */
    struct limit_row row;
    char name[];
};

#define LIMIT_SETTINGS_MAX 1000

struct limit_table {
    struct loop *loop;
    struct list limits;   /* struct named_limit.link, by name */
    struct list settings; /* struct limit_setting.link */
    unsigned n_settings;
    bool wanted;                   /* the store, for a setting */
    bool known;                    /* the settings were read, or are being read */
    struct limit_reading *reading; /* the store has it; NULL = nothing is being read */
};

void limit_table_init(struct limit_table *table, struct loop *loop);
void limit_table_deinit(struct limit_table *table); /* no group uses one; {0} is allowed */

/* Takes over the limits of a configuration. Appends the files' names to the lists (NULL = not
 * wanted). Returns 0 or -ENOMEM. */
int limit_table_take(struct limit_table *table, const struct config *config, config_strv *added,
                     config_strv *changed, config_strv *removed);

/* Returns the bounds in force of a limit, or of a group's own, that has these in its file. */
struct config_bounds limit_table_bounds(const struct limit_table *table, const char *name,
                                        const struct config_bounds *file);
/* Returns what was set, or NULL. */
const struct limit_row *limit_table_setting(const struct limit_table *table, const char *name);
/* Sets it (NULL = as in the file again), for the limit too if it is a named one. Returns 0,
 * LIMIT_TABLE_E_FULL, or -ENOMEM. */
int limit_table_set(struct limit_table *table, const char *name, const struct limit_row *row);
enum {
    _LIMIT_TABLE_E_SUCCESS,
    LIMIT_TABLE_E_FULL,
};
/* Reads once what was set, from a store that is open. `done`: called in a later turn, when it has
 * been read; the owners of settings that are no named limits look at them then. */
void limit_table_read(struct limit_table *table, struct store *store,
                      void (*done)(struct limit_table *table));

/* Returns NULL if there is none. */
struct named_limit *limit_table_find(const struct limit_table *table, const char *name);
/* Makes the limits that the group is to use, if no file describes them: such a limit holds all
 * jobs. Returns 0 or -ENOMEM. */
int limit_table_reserve(struct limit_table *table, const struct config_group *config);
