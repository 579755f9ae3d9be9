/* SPDX-License-Identifier: MIT */
#pragma once

/* Memory of a client's results until they are released. Results that arrive while a call waits for
 * another are queued. */

#include "shared/base/list.h"
#include "worker/troupe.h"
#include <stddef.h>

struct result_slot {
    struct list link; /* in the queue, or among those of the program */
    void *map;        /* a blob, or NULL */
    size_t map_size;
    struct troupe_result queued;
    _Alignas(16) char bytes[];
};

struct results {
    struct list queue, given;
};

void results_init(struct results *results);

/* Makes a slot with room for `size` bytes. Returns 0 or -ENOMEM. */
int results_take(struct results *results, size_t size, struct result_slot **ret);

/* Appends a result to the queue, which takes it over unless this returns -ENOMEM. */
int results_queue(struct results *results, const struct troupe_result *result);

/* Returns whether there was one. */
bool results_dequeue(struct results *results, struct troupe_result *ret);

/* Frees all slots, including those not released. */
void results_deinit(struct results *results);
