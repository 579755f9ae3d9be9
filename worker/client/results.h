/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Memory of a client's results until they are released. Slots are reused, so a client that keeps up
 * allocates no memory per result. Results that arrive while a call waits for another are queued.
 */

#include "worker/troupe.h"
#include <stddef.h>

#define RESULTS_CLASSES 3

struct result_slot {
    struct result_slot *next;       /* free list of its class, or the queue */
    struct result_slot *next_owned; /* all slots */
    struct results *results;
    unsigned class;
    void *map; /* a blob, or NULL */
    size_t map_size;
    struct troupe_result queued;
    _Alignas(16) char bytes[];
};

struct results {
    struct result_slot *owned;
    struct result_slot *free[RESULTS_CLASSES];
    struct result_slot *first, *last; /* queue */
    size_t largest;                   /* bytes of the largest slots */
};

/* Takes a slot with room for `size` bytes. Returns 0, -EMSGSIZE above `largest`, or -ENOMEM. */
int results_take(struct results *results, size_t size, struct result_slot **ret);

/* Appends a result to the queue, which takes it over unless this returns -ENOMEM. */
int results_queue(struct results *results, const struct troupe_result *result);

/* Returns whether there was one. */
bool results_dequeue(struct results *results, struct troupe_result *ret);

/* Frees all slots, including those not released. */
void results_deinit(struct results *results);
