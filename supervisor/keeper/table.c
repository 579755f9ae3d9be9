/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/table.h"

/* Returns the link to the place of this key, or the last link of its bucket. */
static uint32_t *link_to(struct table *table, uint64_t key)
{
    uint32_t *link = &table->buckets[key % TABLE_BUCKETS];
    while (*link != 0 && table->places[*link - 1].key != key)
        link = &table->places[*link - 1].next;
    return link;
}

int table_add(struct table *table, uint64_t key)
{
    uint32_t *bucket = &table->buckets[key % TABLE_BUCKETS], number = table->free;
    if (number != 0)
        table->free = table->places[number - 1].next;
    else if (table->n_touched < TABLE_MAX)
        number = ++table->n_touched;
    else
        return -1;
    table->places[number - 1].key = key;
    table->places[number - 1].next = *bucket;
    *bucket = number;
    table->n++;
    return (int)number - 1;
}

int table_find(const struct table *table, uint64_t key)
{
    return (int)*link_to((struct table *)(uintptr_t)table, key) - 1;
}

int table_remove(struct table *table, uint64_t key)
{
    uint32_t *link = link_to(table, key), number = *link;
    if (number == 0)
        return -1;
    *link = table->places[number - 1].next;
    table->places[number - 1].key = 0;
    table->places[number - 1].next = table->free;
    table->free = number;
    table->n--;
    return (int)number - 1;
}

int table_next(const struct table *table, uint32_t place)
{
    while (place < table->n_touched && table->places[place].key == 0)
        place++;
    return place < table->n_touched ? (int)place : -1;
}
