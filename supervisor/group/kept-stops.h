/* SPDX-License-Identifier: MIT */
#pragma once

/* The groups that stay stopped when the supervisor starts (stop --keep), also those that no file
 * describes now. They are on disk: stop-rows.h. */

#include "shared/base/list.h"
#include "supervisor/store/store.h"
#include <stdbool.h>

struct kept_stops {
    struct list names; /* struct kept_stop.link */
    bool read;         /* those of earlier runs are known */
    bool is_reading;   /* `reading` and `fresh` are the store's */
    struct store_task reading;
    struct list fresh; /* struct kept_stop.link: what was read */
};

/* Cannot fail. */
void kept_stops_init(struct kept_stops *stops);
void kept_stops_deinit(struct kept_stops *stops); /* the store is closed; {0} is allowed */

/* Reads them from a store that is open, unless they were read; after an error they are read again
 * with the next call. */
void kept_stops_read(struct kept_stops *stops, struct store *store);

bool kept_stops_have(const struct kept_stops *stops, const char *name);
/* Returns 0 or -ENOMEM. */
int kept_stops_set(struct kept_stops *stops, const char *name, bool stopped);
