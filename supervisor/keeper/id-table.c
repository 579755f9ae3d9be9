/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/id-table.h"

/* Returns the link to the place of this id, or the last link of its bucket. */
static uint32_t *link_to(struct id_table *table, uint64_t id)
{
    uint32_t *link = &table->buckets[id % ID_TABLE_BUCKETS];
    while (*link != 0 && table->places[*link - 1].id != id)
        link = &table->places[*link - 1].next;
    return link;
}

int id_table_add(struct id_table *table, uint64_t id)
{
    uint32_t *bucket = &table->buckets[id % ID_TABLE_BUCKETS], number = table->free;
    if (number != 0)
        table->free = table->places[number - 1].next;
    else if (table->n_touched < ID_TABLE_MAX)
        number = ++table->n_touched;
    else
        return -1;
    table->places[number - 1].id = id;
    table->places[number - 1].next = *bucket;
    *bucket = number;
    table->n++;
    return (int)number - 1;
}

int id_table_find(const struct id_table *table, uint64_t id)
{
    return (int)*link_to((struct id_table *)(uintptr_t)table, id) - 1;
}

int id_table_remove(struct id_table *table, uint64_t id)
{
    uint32_t *link = link_to(table, id), number = *link;
    if (number == 0)
        return -1;
    *link = table->places[number - 1].next;
    table->places[number - 1].id = 0;
    table->places[number - 1].next = table->free;
    table->free = number;
    table->n--;
    return (int)number - 1;
}

int id_table_next(const struct id_table *table, uint32_t place)
{
    while (place < table->n_touched && table->places[place].id == 0)
        place++;
    return place < table->n_touched ? (int)place : -1;
}
