/* SPDX-License-Identifier: MIT */
#include "worker/client/results.h"
#include "worker/public.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

void results_init(struct results *results)
{
    list_init(&results->queue);
    list_init(&results->given);
}

int results_take(struct results *results, size_t size, struct result_slot **ret)
{
    struct result_slot *slot = malloc(sizeof(*slot) + size);

    if (!slot)
        return -ENOMEM;
    slot->map = NULL;
    list_init(&slot->link);
    list_push_back(&results->given, &slot->link);
    *ret = slot;
    return 0;
}

static void results_give(struct result_slot *slot)
{
    if (slot->map)
        (void)munmap(slot->map, slot->map_size);
    list_unlink(&slot->link);
    free(slot);
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
    list_unlink(&slot->link);
    list_push_back(&results->queue, &slot->link);
    return 0;
}

bool results_dequeue(struct results *results, struct troupe_result *ret)
{
    struct list *node = list_first(&results->queue);

    if (!node)
        return false;
    *ret = list_entry(node, struct result_slot, link)->queued;
    list_unlink(node);
    list_push_back(&results->given, node);
    return true;
}

static void give_all(struct list *list)
{
    list_for_each_safe (node, list)
        results_give(list_entry(node, struct result_slot, link));
}

void results_deinit(struct results *results)
{
    give_all(&results->queue);
    give_all(&results->given);
}

_public_ void troupe_result_release(struct troupe_result *result)
{
    if (result->internal)
        results_give(result->internal);
    result->internal = NULL;
    result->data = result->reason = "";
    result->size = 0;
}
