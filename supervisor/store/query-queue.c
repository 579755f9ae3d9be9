/* SPDX-License-Identifier: MIT */
#include "supervisor/store/query-queue.h"

#include "supervisor/store/store.h"

#define task_of(node) list_entry(node, struct store_task, link)

void query_queue_init(struct query_queue *queue)
{
    list_init(&queue->first);
}

void query_queue_add(struct query_queue *queue, struct store_task *query)
{
    query->is_first = true;
    list_init(&query->others);
    list_for_each (node, &queue->first) {
        if (task_of(node)->asker != query->asker)
            continue;
        query->is_first = false;
        list_push_back(&task_of(node)->others, &query->link);
        return;
    }
    list_push_back(&queue->first, &query->link);
}

/* Returns the query that is now the first of its user, in no list yet; NULL = there is none. */
static struct store_task *next_of(struct store_task *first)
{
    struct list *node = list_first(&first->others);

    if (!node)
        return NULL;
    list_unlink(node);
    task_of(node)->is_first = true;
    list_append(&task_of(node)->others, &first->others);
    return task_of(node);
}

struct store_task *query_queue_take(struct query_queue *queue)
{
    struct list *node = list_first(&queue->first);
    struct store_task *next;

    if (!node)
        return NULL;
    list_unlink(node);
    next = next_of(task_of(node));
    if (next)
        list_push_back(&queue->first, &next->link);
    return task_of(node);
}

void query_queue_remove(struct store_task *query)
{
    struct store_task *next = query->is_first ? next_of(query) : NULL;

    if (next)
        list_push_front(&query->link, &next->link);
    list_unlink(&query->link);
}

void query_queue_take_all(struct query_queue *queue, struct list *to)
{
    struct list *node;

    while ((node = list_first(&queue->first))) {
        list_unlink(node);
        list_push_back(to, node);
        list_append(to, &task_of(node)->others);
    }
}
