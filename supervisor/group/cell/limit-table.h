/* SPDX-License-Identifier: MIT */
#pragma once

/* The limits that files describe (NAME.limit), which groups use; and the settings that were made at
 * run time: of these limits, of groups' own limits, and of keys ("GROUP/KEY"). */

#include "shared/base/list.h"
#include "shared/protocol/protocol.h"
#include "supervisor/config/config.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/group/cell/limit.h"
#include "supervisor/store/settings.h"
#include <stdbool.h>

struct loop;

/* Freed by limit_table_forget_unused(). */
struct named_limit {
    struct limit limit;
    struct list link;          /* in limit_table.limits */
    struct config_bounds file; /* what its file says */
    bool described;
    char name[];
};

#define LIMIT_SETTINGS_MAX     1000
#define LIMIT_SETTING_NAME_MAX (CONFIG_GROUP_NAME_MAX + 1 + PROTOCOL_KEY_MAX)

struct limit_table {
    struct loop *loop;
    struct list limits; /* struct named_limit.link, by name */
    struct settings settings;
    bool wanted;  /* the store is wanted, for a setting */
    bool awaited; /* there may be settings of earlier runs: new groups hold their jobs */
};

/* Cannot fail. */
void limit_table_init(struct limit_table *table, struct loop *loop);
/* No group may use a limit, and the store is closed. {0} is allowed. */
void limit_table_deinit(struct limit_table *table);

/* Takes over the limits of a configuration. Appends the files' names to the lists (NULL = not
 * wanted). Returns 0 or -ENOMEM. */
int limit_table_take(struct limit_table *table, const struct config *config, config_strv *added,
                     config_strv *changed, config_strv *removed);
/* Frees the limits that no file describes any more and no group uses. */
void limit_table_forget_unused(struct limit_table *table);
/* Makes the limits that the group is to use and that do not exist: one without a file holds all
 * jobs. Returns 0 or -ENOMEM. */
int limit_table_reserve(struct limit_table *table, const struct config_group *config);
/* Returns NULL if there is none. */
struct named_limit *limit_table_find(const struct limit_table *table, const char *name);

/* ---- settings ---- */

/* Returns the setting of this name, or NULL. */
const struct limit_row *limit_table_setting(const struct limit_table *table, const char *name);
static inline bool limit_table_is_full(const struct limit_table *table)
{
    return table->settings.by_name.n_entries >= LIMIT_SETTINGS_MAX;
}
/* Applies a setting that was made or removed (NULL = all that settings_read() has found) if it is
 * that of a named limit. The caller tells groups. */
void limit_table_apply(struct limit_table *table, const char *name);

/* Returns the bounds of a file, changed by the row. */
struct config_bounds limit_row_bounds(const struct limit_row *row,
                                      const struct config_bounds *file);
/* Returns the bounds in force of a named limit, or of a group's own, which are `file` without a
 * setting. */
struct config_bounds limit_table_bounds(const struct limit_table *table, const char *name,
                                        const struct config_bounds *file);
/* Returns the part of a group's bounds that is for the whole group, or for each key. */
struct config_bounds limit_part(const struct config_group *config, const struct config_bounds *all,
                                enum config_limit_per per);
/* Returns the bounds in force of a key of the group, which are `bounds` without a setting. */
struct config_bounds limit_table_key_bounds(const struct limit_table *table,
                                            const struct config_group *config,
                                            const struct config_bounds *bounds, const char *key,
                                            size_t size);
/* Whether there is a setting of a key of the group. */
bool limit_table_has_keys(const struct limit_table *table, const char *group);
/* Whether the name is that of a key of the group. */
bool limit_is_key_of(const char *name, const char *group);
