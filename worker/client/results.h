/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Memory for results a client has been given: what troupe_result points to, until it is released.
 * Slots are used again instead of being freed, so a client that keeps up allocates nothing per
 * message. Results that arrive while a call waits for its own answer are queued here.
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
    size_t largest;                   /* no slot has to hold more bytes than this */
};

/* A slot with room for `size` bytes. 0, -EMSGSIZE above `largest`, -ENOMEM. */
int results_take(struct results *results, size_t size, struct result_slot **ret);

/* At the end of the queue; `result` is copied with what it owns. -ENOMEM: it still is the
 * caller's. */
int results_queue(struct results *results, const struct troupe_result *result);

/* Whether there was one. */
bool results_dequeue(struct results *results, struct troupe_result *ret);

/* Frees all slots, those not released included. */
void results_deinit(struct results *results);
