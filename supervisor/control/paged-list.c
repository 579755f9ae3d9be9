/* SPDX-License-Identifier: MIT */

#include "supervisor/control/paged-list.h"
#include <stdint.h>
#include <stdlib.h>

/* The size at which a page is sent. */
#define PAGE_BYTES ((size_t)1 << 20)

#define list_of(pointer) list_entry(pointer, struct control_list, parts)

struct reply *control_list_item(struct control_list *list)
{
    list->left--;
    return request_part_reply(&list->parts);
}

static bool write_page(struct request_parts *parts)
{
    struct control_list *list = list_of(parts);

    do {
        if (list->left == 0 || request_part_reply(parts)->size >= PAGE_BYTES)
            return true;
        list->complete = !list->step(list);
    } while (!list->complete && !parts->waits && !request_part_full(parts, 1));
    return list->complete;
}

static void finish_page(struct request_parts *parts)
{
    struct control_list *list = list_of(parts);

    if (!list->complete)
        reply_uint(request_part_reply(parts), "next", list->cursor);
    if (list->finish)
        list->finish(list);
}

static void free_page(struct request_parts *parts)
{
    struct control_list *list = list_of(parts);

    if (list->free)
        list->free(list);
    else
        free(list);
}

static void stay(struct request_parts *parts)
{
    list_of(parts)->stay(list_of(parts));
}

void control_list(struct request *request, struct control_list *list, const char *array)
{
    const bool stays = list->stay && request_wants_more(request);

    if (!request_range(request, "limit", 1, CONTROL_PAGE_MAX)) {
        free_page(&list->parts);
        return;
    }
    list->cursor = (uint64_t)request_int(request, "cursor", (int64_t)list->cursor);
    list->left = (size_t)request_int(request, "limit", CONTROL_PAGE_MAX);
    if (stays)
        list->left = SIZE_MAX;
    list->parts = (struct request_parts){.array = array,
                                         .may_continue = stays,
                                         .write = write_page,
                                         .stay = stays ? stay : NULL,
                                         .finish = finish_page,
                                         .free = free_page};
    request_in_parts(request, &list->parts);
}

struct table_list {
    struct control_list list;
    const struct handle_table *table;
    void (*write)(struct control_list *list, const void *object);
};

static bool step_table(struct control_list *list)
{
    const struct table_list *all = list_entry(list, struct table_list, list);
    const void *object;

    if (list->cursor >= all->table->n_entries)
        return false;
    object = handle_table_at(all->table, (uint32_t)list->cursor++);
    if (object)
        all->write(list, object);
    return true;
}

void control_list_table(struct request *request, const char *array,
                        const struct handle_table *table,
                        void (*write)(struct control_list *list, const void *object))
{
    struct table_list *all = request_allocate(request, sizeof(*all));

    if (!all)
        return;
    all->list.step = step_table;
    all->table = table;
    all->write = write;
    control_list(request, &all->list, array);
}
