/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls whose work grows with the number of items: done in parts, a few per turn of the loop, so
 * that other clients do not wait for the whole. Items may change or vanish between two parts.
 *
 * A call either lists items: the reply is an array and the fields that follow it. Without "more"
 * it is one reply, sent when complete. With "more", if the method allows it, each part is a reply,
 * written once the client has read most of the earlier ones. Or the call changes items: then there
 * is no array, and the fields after the last part are the reply.
 *
 * A list may be in pages: up to `limit` items from `cursor` on per call, and `next` in the reply
 * while there may be more. A cursor stays valid whatever changes between two calls: an item that
 * exists throughout is listed exactly once. */

#include "shared/base/handle-table.h"
#include "supervisor/loop/work-queue.h"
#include "supervisor/varlink/request.h"
#include <stdbool.h>
#include <stddef.h>

/* Largest and default `limit`. */
#define REQUEST_PAGE_MAX 1000

/* Embedded in the state of a method, which is on the heap and zeroed. */
struct request_parts {
    const char *array; /* its key, static; NULL = the call changes things */
    bool may_continue; /* several replies are fine with the method */
    /* Writes or changes the next item, or skips it. Returns false at the end. */
    bool (*step)(struct request_parts *parts);
    /* Called between two replies: closes objects that are open within the array, and opens them
     * again. NULL = none are. */
    void (*pause)(struct request_parts *parts);
    void (*resume)(struct request_parts *parts);
    /* Called with "more" each time all items are written: the call stays open, and the method calls
     * request_parts_wake() when there are more, or ends it. NULL = the call ends then. A list in
     * pages is then not cut. */
    void (*stay)(struct request_parts *parts);
    /* Writes the fields after the array; may be NULL. */
    void (*finish)(struct request_parts *parts);
    /* Frees the state once the answer is complete or the client has gone. NULL = free(parts). */
    void (*free)(struct request_parts *parts);

    /* Set by step(): the next item is not available until request_parts_resume(). */
    bool waits;
    /* In a list with pages: the start of the next page; 0 = the beginning. step() moves it past
     * each item. The call's "cursor", if any, replaces its first value. */
    uint64_t cursor;
    size_t left; /* items that still fit into the page */

    /* Private. */
    bool has_pages, complete;
    struct request *request;
    struct task task; /* writes the next part */
    size_t empty;     /* the size of the reply without any item */
    size_t begun;     /* the size of the reply when this part began */
    size_t n_looked_at;
};

/* Answers the request; the first part immediately. Takes `parts` over. */
void request_in_parts(struct request *request, struct request_parts *parts);

/* Like request_in_parts(), for a list in pages: the request has "cursor" and "limit". `array` is
 * the key of the items, static. */
void request_in_pages(struct request *request, struct request_parts *parts, const char *array);

/* Lists the objects of a handle table in pages: `write` writes each that matches, with
 * request_part_item(). Objects have the same index for as long as they exist, which is the cursor.
 */
void request_list_table(struct request *request, const char *array,
                        const struct handle_table *table,
                        void (*write)(struct request_parts *parts, const void *object));

/* Writes the next part in a later turn. */
void request_parts_resume(struct request_parts *parts);

/* Of a call that stays open: there are more items, which are written now, or if this turn has spent
 * its time for clients, in a later one; and not before the client has read most of the earlier
 * ones. */
void request_parts_wake(struct request_parts *parts);
/* Writes all items now. Only stay() and later ones may call it, as is request_parts_end(). */
void request_parts_flush(struct request_parts *parts);
/* Ends the call, which frees it. */
void request_parts_end(struct request_parts *parts);

/* Counts `n` more items, reported or not. Each step counts one already. Returns whether the part is
 * full. */
bool request_part_full(struct request_parts *parts, size_t n);

struct reply *request_part_reply(struct request_parts *parts);
/* The reply to write one item of a page to. */
struct reply *request_part_item(struct request_parts *parts);
