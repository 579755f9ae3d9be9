/* SPDX-License-Identifier: MIT */
#pragma once

/* Intrusive doubly linked list. A node that is in no list points at itself, so list_unlink() of an
 * unlinked node is harmless. The list owns nothing: the owner of a node unlinks it before freeing
 * it. */

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(self)                                                                            \
    {                                                                                              \
        .next = &(self), .prev = &(self)                                                           \
    }

#define list_entry(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

#define list_for_each(node, head)                                                                  \
    for (struct list *node = (head)->next; node != (head); node = node->next)

/* The body may unlink and free the current node, but no other. */
#define list_for_each_safe(node, head)                                                             \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head);              \
         node = node##_next, node##_next = node->next)

/* The node of an entry, which may not exist: list_entry(head) at a list's end. */
#define LIST_NODE(entry, type, member)                                                             \
    ((struct list *)(void *)((char *)(entry) + offsetof(type, member)))

/* Like list_for_each() and list_for_each_safe(), for what the nodes are members of. */
#define list_for_each_entry(entry, head, type, member)                                             \
    for (type *entry = list_entry((head)->next, type, member);                                     \
         LIST_NODE(entry, type, member) != (head);                                                 \
         entry = list_entry(entry->member.next, type, member))
#define list_for_each_entry_safe(entry, head, type, member)                                        \
    for (type *entry = list_entry((head)->next, type, member),                                     \
              *entry##_next = list_entry(LIST_NODE(entry, type, member)->next, type, member);      \
         LIST_NODE(entry, type, member) != (head); entry = entry##_next,                           \
              entry##_next = list_entry(LIST_NODE(entry, type, member)->next, type, member))

static inline void list_init(struct list *node)
{
    node->next = node->prev = node;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline bool list_linked(const struct list *node)
{
    return node->next != node;
}

static inline void list_insert_between(struct list *node, struct list *before, struct list *after)
{
    before->next = node;
    node->prev = before;
    node->next = after;
    after->prev = node;
}

static inline void list_push_back(struct list *head, struct list *node)
{
    list_insert_between(node, head->prev, head);
}

static inline void list_push_front(struct list *head, struct list *node)
{
    list_insert_between(node, head, head->next);
}

static inline void list_unlink(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* Swaps the contents of two lists. */
static inline void list_swap(struct list *a, struct list *b)
{
    struct list other;

    list_init(&other);
    list_insert_between(&other, a->prev, a);
    list_unlink(a);
    list_insert_between(a, b->prev, b);
    list_unlink(b);
    list_insert_between(b, other.prev, &other);
    list_unlink(&other);
}

/* Moves all nodes of `from` behind those of `to`. */
static inline void list_append(struct list *to, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* NULL when empty. */
static inline struct list *list_first(const struct list *head)
{
    return list_empty(head) ? NULL : head->next;
}
#define list_first_entry(head, type, member)                                                       \
    (list_empty(head) ? NULL : list_entry((head)->next, type, member))

/* The body unlinks the entry, which is the first one of the list, or leaves the loop. */
#define list_until_empty(entry, head, type, member)                                                \
    for (type *entry = NULL; (entry = list_first_entry(head, type, member));)

/* ---- cursors ---- */

/* A position in a list that changes while it is walked over several turns of the loop. The list's
 * owner keeps the cursors in another list, and calls list_cursors_pass() before it unlinks a node
 * and list_cursors_end() before the list goes away. */
struct list_cursor {
    struct list link; /* in the owner's list of cursors */
    struct list *at;  /* the next node; the head of the list = no more; NULL = ended */
    bool backward;
};

static inline void list_cursor_begin(struct list_cursor *cursor, struct list *cursors,
                                     const struct list *head, bool backward)
{
    *cursor = (struct list_cursor){.at = backward ? head->prev : head->next, .backward = backward};
    list_push_back(cursors, &cursor->link);
}

static inline void list_cursor_advance(struct list_cursor *cursor)
{
    cursor->at = cursor->backward ? cursor->at->prev : cursor->at->next;
}

/* Idempotent. */
static inline void list_cursor_end(struct list_cursor *cursor)
{
    list_unlink(&cursor->link);
    cursor->at = NULL;
}

/* Moves the cursors at `node`, which is about to be unlinked, to the next one. */
static inline void list_cursors_pass(struct list *cursors, const struct list *node)
{
    list_for_each_entry (cursor, cursors, struct list_cursor, link)
        if (cursor->at == node)
            list_cursor_advance(cursor);
}

static inline void list_cursors_end(struct list *cursors)
{
    list_for_each_safe (link, cursors)
        list_cursor_end(list_entry(link, struct list_cursor, link));
}
