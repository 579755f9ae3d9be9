/* SPDX-License-Identifier: MIT */
#include "worker/client/pending.h"

#include <errno.h>
#include <stdlib.h>

static int make_room(struct pending *pending)
{
    struct pending_request *requests;

    if (pending->n_requests == pending->table.n_allocated)
        return 0;
    requests = reallocarray(pending->requests, pending->table.n_allocated, sizeof(*requests));
    if (!requests)
        return -ENOMEM;
    pending->requests = requests;
    pending->n_requests = pending->table.n_allocated;
    return 0;
}

int pending_take(struct pending *pending, struct pending_request request, uint64_t *ret_number)
{
    int r = handle_table_add(&pending->table, pending, ret_number);

    if (r < 0)
        return r;
    r = make_room(pending);
    if (r < 0)
        handle_table_remove(&pending->table, *ret_number);
    else
        pending->requests[(uint32_t)*ret_number] = request;
    return r;
}

struct pending_request *pending_get(const struct pending *pending, uint64_t number)
{
    return handle_table_get(&pending->table, number) ? &pending->requests[(uint32_t)number] : NULL;
}

int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie)
{
    struct pending_request *request = pending_get(pending, number);

    if (!request)
        return -EPROTO;
    *ret_cookie = request->cookie;
    free(request->id);
    handle_table_remove(&pending->table, number);
    return 0;
}

struct pending_request *pending_lost(struct pending *pending, uint64_t read, uint64_t *ret_number)
{
    while (handle_table_next(&pending->table, &pending->cursor)) {
        const uint32_t index = (uint32_t)pending->cursor - 1;

        if (pending->requests[index].sent >= read)
            continue;
        *ret_number = handle_table_handle(&pending->table, index);
        return &pending->requests[index];
    }
    pending->cursor = 0;
    return NULL;
}

void pending_deinit(struct pending *pending)
{
    size_t cursor = 0;

    while (handle_table_next(&pending->table, &cursor))
        free(pending->requests[cursor - 1].id);
    handle_table_deinit(&pending->table);
    free(pending->requests);
}
