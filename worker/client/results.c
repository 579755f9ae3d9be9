/* SPDX-License-Identifier: MIT */
#include "worker/client/results.h"
#include "worker/public.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static size_t class_size(const struct results *results, unsigned class)
{
    static const size_t sizes[RESULTS_CLASSES - 1] = {256, 4096};

    return class < RESULTS_CLASSES - 1 ? sizes[class] : results->largest;
}

int results_take(struct results *results, size_t size, struct result_slot **ret)
{
    struct result_slot *slot;
    unsigned class = 0;

    while (class < RESULTS_CLASSES && class_size(results, class) < size)
        class ++;
    if (class == RESULTS_CLASSES)
        return -EMSGSIZE;
    slot = results->free[class];
    if (slot) {
        results->free[class] = slot->next;
        *ret = slot;
        return 0;
    }
    slot = malloc(sizeof(*slot) + class_size(results, class));
    if (!slot)
        return -ENOMEM;
    slot->next_owned = results->owned;
    slot->results = results;
    slot->class = class;
    slot->map = NULL;
    results->owned = slot;
    *ret = slot;
    return 0;
}

static void unmap(struct result_slot *slot)
{
    if (slot->map)
        (void)munmap(slot->map, slot->map_size);
    slot->map = NULL;
}

static void results_give(struct result_slot *slot)
{
    unmap(slot);
    slot->next = slot->results->free[slot->class];
    slot->results->free[slot->class] = slot;
}

int results_queue(struct results *results, const struct troupe_result *result)
{
    struct result_slot *slot = result->internal;

    if (!slot) {
        int r = results_take(results, 0, &slot);

        if (r < 0)
            return r;
    }
    slot->queued = *result;
    slot->queued.internal = slot;
    slot->next = NULL;
    if (results->first)
        results->last->next = slot;
    else
        results->first = slot;
    results->last = slot;
    return 0;
}

bool results_dequeue(struct results *results, struct troupe_result *ret)
{
    struct result_slot *slot = results->first;

    if (!slot)
        return false;
    results->first = slot->next;
    *ret = slot->queued;
    return true;
}

void results_deinit(struct results *results)
{
    struct result_slot *next;

    for (struct result_slot *slot = results->owned; slot; slot = next) {
        next = slot->next_owned;
        unmap(slot);
        free(slot);
    }
    *results = (struct results){0};
}

_public_ void troupe_result_release(struct troupe_result *result)
{
    if (result->internal)
        results_give(result->internal);
    result->internal = NULL;
    result->data = result->reason = "";
    result->size = 0;
}
