/* SPDX-License-Identifier: MIT */
#pragma once

/* Settings of one kind that were made at run time (setting-rows.h), by name, also for names that no
 * file describes now. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/store/setting-rows.h"
#include "supervisor/store/store.h"
#include <stdbool.h>

struct setting {
    struct list link;           /* in settings.all or .fresh */
    struct index_entry by_name; /* in settings.by_name */
    const char *name;
    uint64_t row[]; /* as its setting_rows say */
};

struct settings {
    const struct setting_rows *rows;
    struct list all;      /* struct setting.link */
    struct index by_name; /* struct setting.by_name */
    bool read;            /* those of earlier runs are known */
    bool is_reading;      /* `reading` and `fresh` are the store's */
    struct store_task reading;
    struct list fresh; /* struct setting.link: what was read */
    void (*known)(struct settings *settings);
};

/* Cannot fail. */
void settings_init(struct settings *settings, const struct setting_rows *rows);
void settings_deinit(struct settings *settings); /* the store is closed; {0} is allowed */

/* Reads the settings of earlier runs from a store that is open, unless they have been read. Calls
 * `known` (NULL = nothing) in a later turn, also after an error, but not once the store is closed.
 * After an error, the next call reads them again. */
void settings_read(struct settings *settings, struct store *store,
                   void (*known)(struct settings *settings));

/* Returns NULL if there is no setting for this name. */
const struct setting *settings_find(const struct settings *settings, const char *name, size_t size);
/* Makes or changes a setting; `row` NULL = removes it. Returns 0 or -ENOMEM. */
int settings_set(struct settings *settings, const char *name, const void *row);
