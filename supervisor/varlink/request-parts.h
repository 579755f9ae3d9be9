/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls whose work grows with the number of items: done in parts, a few per turn of the loop, so
 * that other clients do not wait for the whole. Items may change or vanish between two parts.
 *
 * A call either lists items: the reply is an array and the fields that follow it. Without "more"
 * it is one reply, sent when complete. With "more", if the method allows it, each part is a reply,
 * written once the client has read most of the earlier ones. Or the call changes items: then there
 * is no array, and the fields after the last part are the reply. */

#include "supervisor/loop/work-queue.h"
#include "supervisor/varlink/request.h"
#include <stdbool.h>
#include <stddef.h>

/* Embedded in the state of a method, which is on the heap. */
struct request_parts {
    const char *array; /* its key; NULL = the call changes things */
    bool may_continue; /* several replies are fine with the method */
    /* Adds items until request_part_full(). Returns whether these were the last. */
    bool (*write)(struct request_parts *parts);
    /* Called between two replies: closes objects that are open within the array, and opens them
     * again. NULL = none are. */
    void (*pause)(struct request_parts *parts);
    void (*resume)(struct request_parts *parts);
    /* Called with "more" when all items are written: the call stays open, and the method sends
     * further replies itself. NULL = the call ends then. */
    void (*stay)(struct request_parts *parts);
    /* Writes the fields after the array; may be NULL. */
    void (*finish)(struct request_parts *parts);
    /* Frees the state: the answer is complete, or the client has gone. */
    void (*free)(struct request_parts *parts);

    /* Set by write(), which has returned false: the next part is written after
     * request_parts_resume(). */
    bool waits;

    /* Private. */
    struct request *request;
    struct task task; /* writes the next part */
    size_t empty;     /* the size of the reply without any item */
    size_t begun;     /* the size of the reply when this part began */
    size_t n_looked_at;
};

/* Answers the request; the first part at once. Takes `parts` over. */
void request_in_parts(struct request *request, struct request_parts *parts);

/* Writes the next part in a later turn. */
void request_parts_resume(struct request_parts *parts);

/* Counts another `n` items, reported or not. Returns whether the part is full. */
bool request_part_full(struct request_parts *parts, size_t n);

struct reply *request_part_reply(struct request_parts *parts);
