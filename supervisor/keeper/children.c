/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/children.h"

static uint32_t *bucket_of(struct children *children, pid_t pid)
{
    return &children->buckets[(uint32_t)pid % CHILDREN_BUCKETS];
}

/* Returns the link to the child with this pid, or the last link of its bucket. */
static uint32_t *link_to(struct children *children, pid_t pid)
{
    uint32_t *link = bucket_of(children, pid);
    while (*link != 0 && children->table[*link - 1].pid != pid)
        link = &children->table[*link - 1].next;
    return link;
}

bool children_full(const struct children *children)
{
    return children->n == CHILDREN_MAX;
}

static uint32_t take_free(struct children *children)
{
    uint32_t number = children->free;
    if (number == 0)
        return ++children->n_touched;
    children->free = children->table[number - 1].next;
    return number;
}

void children_add(struct children *children, pid_t pid, uint64_t id, bool contained)
{
    uint32_t *bucket = bucket_of(children, pid);
    uint32_t number = take_free(children);
    children->table[number - 1] =
        (struct child){.pid = pid, .next = *bucket, .id = id, .contained = contained};
    *bucket = number;
    children->n++;
}

struct child *children_find(struct children *children, pid_t pid)
{
    uint32_t number = *link_to(children, pid);
    return number != 0 ? &children->table[number - 1] : NULL;
}

void children_remove(struct children *children, pid_t pid)
{
    uint32_t *link = link_to(children, pid);
    uint32_t number = *link;
    if (number == 0)
        return;
    *link = children->table[number - 1].next;
    children->table[number - 1] = (struct child){.next = children->free};
    children->free = number;
    children->n--;
}

void children_each(struct children *children, void (*fn)(struct child *child))
{
    for (uint32_t i = 0; i < children->n_touched; i++)
        if (children->table[i].pid != 0)
            fn(&children->table[i]);
}
