/* SPDX-License-Identifier: MIT */
#include "worker/client/pending.h"

#include <errno.h>
#include <stdlib.h>

static int make_room(struct pending *pending)
{
    uint64_t *cookies;

    if (pending->n_cookies == pending->table.n_allocated)
        return 0;
    cookies = reallocarray(pending->cookies, pending->table.n_allocated, sizeof(*cookies));
    if (!cookies)
        return -ENOMEM;
    pending->cookies = cookies;
    pending->n_cookies = pending->table.n_allocated;
    return 0;
}

int pending_take(struct pending *pending, uint64_t cookie, uint64_t *ret_number)
{
    int r = handle_table_add(&pending->table, pending, ret_number);

    if (r < 0)
        return r;
    r = make_room(pending);
    if (r < 0)
        handle_table_remove(&pending->table, *ret_number);
    else
        pending->cookies[(uint32_t)*ret_number] = cookie;
    return r;
}

int pending_give(struct pending *pending, uint64_t number, uint64_t *ret_cookie)
{
    if (!handle_table_get(&pending->table, number))
        return -EPROTO;
    *ret_cookie = pending->cookies[(uint32_t)number];
    handle_table_remove(&pending->table, number);
    return 0;
}

void pending_deinit(struct pending *pending)
{
    handle_table_deinit(&pending->table);
    free(pending->cookies);
}
