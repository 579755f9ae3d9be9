/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Methods that list things, a page per call: `limit` items at most from where `cursor` says, and
 * `next` in the answer while there may be more. A cursor is a number that stays good whatever
 * changes between two calls: what is there all the time is listed exactly once.
 *
 * A page is written over several turns of the loop (request-parts.h), and a large one ends early,
 * so nobody else waits for it.
 */

#include "supervisor/varlink/request-parts.h"
#include "supervisor/varlink/request.h"
#include "supervisor/varlink/varlink.h"

/* Parameters of the call, in the struct of the method's own. */
struct control_page {
    struct varlink_int cursor, limit;
};

#define CONTROL_PAGE_ROWS(type_)                                                                   \
    {"cursor", VARLINK_INT, false, offsetof(type_, page.cursor)},                                  \
    {                                                                                              \
        "limit", VARLINK_INT, false, offsetof(type_, page.limit)                                   \
    }

/* 1 to this many items; as many if the call does not say. */
#define CONTROL_PAGE_MAX 1000

/* Embedded in the state of a method, which is on the heap and zeroed. */
struct control_list {
    struct request_parts parts;
    /* Where the next page begins. 0 at the beginning. */
    uint64_t cursor;
    size_t left; /* items that the page still takes */
    bool complete;
    /*
     * Looks at one thing: moves `cursor` past it and reports it, with control_list_item(), if it is
     * wanted. false when there is nothing left to look at.
     */
    bool (*step)(struct control_list *list);
    /* NULL, or what is told with "more" instead of a page: all items, then this is called, and the
     * method tells what is to come. */
    void (*stay)(struct control_list *list);
    void (*finish)(struct control_list *list); /* what follows the items; NULL = nothing */
    void (*free)(struct control_list *list);   /* what it holds, and itself; NULL = free(list) */
};

/* Whether cursor and limit are possible; otherwise answered. */
bool control_take_page(struct request *request, const struct control_page *page);

/* Answers the request. Takes `list` over. `array` is the items' key, static. */
void control_list(struct request *request, struct control_list *list, const char *array,
                  const struct control_page *page);

/* An item is written with this, inside control_list.step. */
struct reply *control_list_item(struct control_list *list);
