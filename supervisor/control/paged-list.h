/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Methods that list items, a page per call: up to `limit` items from `cursor` on, and `next` in the
 * reply while there may be more. A cursor stays valid whatever changes between two calls: an item
 * that exists throughout is listed exactly once. Writing a page may take several turns of the loop
 * (request-parts.h).
 */

#include "shared/base/handle-table.h"
#include "supervisor/varlink/request-parts.h"
#include "supervisor/varlink/request.h"
#include "supervisor/varlink/varlink.h"

/* Largest and default `limit`. */
#define CONTROL_PAGE_MAX 1000

/* Embedded in the state of a method, which is on the heap and zeroed. */
struct control_list {
    struct request_parts parts;
    /* Start of the next page; 0 = the beginning. The call's "cursor" replaces what it was at first.
     */
    uint64_t cursor;
    size_t left; /* items that still fit into the page */
    bool complete;
    /*
     * Moves `cursor` past one candidate, and writes it with control_list_item() if it matches.
     * Returns false at the end. Sets parts.waits if the next candidate is not available yet.
     */
    bool (*step)(struct control_list *list);
    /*
     * Optional: a call with "more" gets all items instead of a page; then this subscribes it to new
     * ones.
     */
    void (*stay)(struct control_list *list);
    void (*finish)(struct control_list *list); /* writes fields behind the items; may be NULL */
    void (*free)(struct control_list *list);   /* NULL = free(list) */
};

/* Replies to the request, which has "cursor" and "limit"; takes over `list`. `array` is the key of
 * the items, static. */
void control_list(struct request *request, struct control_list *list, const char *array);

/* The reply to write one item to, from control_list.step. */
struct reply *control_list_item(struct control_list *list);

/* Lists the objects of a handle table: `write` writes each that matches, with control_list_item().
 * Objects have the same index for as long as they exist, which is the cursor. */
void control_list_table(struct request *request, const char *array,
                        const struct handle_table *table,
                        void (*write)(struct control_list *list, const void *object));
