/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The queries that wait for the store's thread, which answers one of each user in turn: a user with
 * very many does not delay those of others. The first query of a user is in the queue, the others
 * are in a list of that one. So there are at most as many to look at as there are users.
 */

#include "shared/base/list.h"

struct store_task;

struct query_queue {
    struct list first; /* struct store_task.link: the first query of each user */
};

void query_queue_init(struct query_queue *queue);

/* Adds a query behind those of the same user. */
void query_queue_add(struct query_queue *queue, struct store_task *query);
/* Takes the next one; the others of its user wait behind those of other users. NULL = none. */
struct store_task *query_queue_take(struct query_queue *queue);
void query_queue_remove(struct store_task *query);
/* Moves all to a list. */
void query_queue_take_all(struct query_queue *queue, struct list *to);

static inline bool query_queue_empty(const struct query_queue *queue)
{
    return list_empty(&queue->first);
}
