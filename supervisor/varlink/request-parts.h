/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls whose work grows with the number of things there are: done a part at a time, a few parts in
 * each turn of the loop, so that nobody else waits for the whole. The things may change and go away
 * between two parts.
 *
 * Such a call either lists things: the reply is one array, and what follows it. Without "more" it
 * is one reply, sent when it is complete. With "more", if the method allows it, each part is a
 * reply of its own, and none is written before the client has read what it was sent. Or the call
 * changes things: then there is no array, and the reply is what follows the last part. */

#include "supervisor/loop/work-queue.h"
#include "supervisor/varlink/request.h"
#include <stdbool.h>
#include <stddef.h>

/* Embedded in the state of a method, which is on the heap. What is not set may be NULL. */
struct request_parts {
    const char *array; /* its key; NULL = the call changes things */
    bool may_continue; /* several replies are fine with the method */
    /* Adds items until request_part_full(). Whether these were the last. */
    bool (*write)(struct request_parts *parts);
    /* Between two replies: closes what is open within the array, and opens it again. */
    void (*pause)(struct request_parts *parts);
    void (*resume)(struct request_parts *parts);
    /* NULL, or with "more", when all items have been written: the call goes on, and the method
     * sends what is to come by itself. */
    void (*stay)(struct request_parts *parts);
    /* What follows the array. */
    void (*finish)(struct request_parts *parts);
    /* Frees it: the answer is complete, or nobody wants it any more. */
    void (*free)(struct request_parts *parts);

    /* The rest is its own. */
    struct request *request;
    struct task task; /* writes the next part */
    size_t empty;     /* the size of the reply without any item */
    size_t begun;     /* the size of the reply when this part began */
    size_t n_looked_at;
};

/* Answers the request; the first part at once. Takes `parts` over. */
void request_in_parts(struct request *request, struct request_parts *parts);

/* Another `n` things were looked at, reported or not: whether that is enough for this turn. */
bool request_part_full(struct request_parts *parts, size_t n);

struct reply *request_part_reply(struct request_parts *parts);
