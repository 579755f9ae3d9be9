/* SPDX-License-Identifier: MIT */
#pragma once

/* What was set at run time of one kind, by name: setting-rows.h. Also of names that no file
 * describes now. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/store/setting-rows.h"
#include "supervisor/store/store.h"
#include <stdbool.h>

struct setting {
    struct list link;           /* in settings.all or .fresh */
    struct index_entry by_name; /* in settings.by_name */
    struct limit_row row;
    char name[];
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

/* Reads those of earlier runs from a store that is open, unless they were read. `known`, which may
 * be NULL, is called in a later turn; after an error they are read again with the next call. */
void settings_read(struct settings *settings, struct store *store,
                   void (*known)(struct settings *settings));

/* Returns NULL if it is not set. */
const struct setting *settings_find(const struct settings *settings, const char *name, size_t size);
/* `row`: NULL = it is not set any more. Returns 0 or -ENOMEM. */
int settings_set(struct settings *settings, const char *name, const struct limit_row *row);
