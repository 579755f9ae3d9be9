/* SPDX-License-Identifier: MIT */
#pragma once

/* A position in a list that changes while it is walked over several turns of the loop. The list's
 * owner keeps the cursors in another list, and calls list_cursors_pass() before it unlinks a node
 * and list_cursors_end() before the list goes away. */

#include "shared/base/list.h"

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
    list_for_each (link, cursors) {
        struct list_cursor *cursor = list_entry(link, struct list_cursor, link);

        if (cursor->at == node)
            list_cursor_advance(cursor);
    }
}

static inline void list_cursors_end(struct list *cursors)
{
    list_for_each_safe (link, cursors)
        list_cursor_end(list_entry(link, struct list_cursor, link));
}
