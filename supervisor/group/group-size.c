/* SPDX-License-Identifier: MIT */
/* Sizes of the pools of a group. */

#include "supervisor/group/group-private.h"

static size_t nearest(struct config_size range, size_t size)
{
    if (size < range.low)
        return range.low;
    return size < range.high ? size : range.high;
}

/* After a failure the next dispatch frees the reserved slots. */
int group_reserve(struct group *group, struct config_size range)
{
    int r = 0;

    group_each_cell (cell, group) {
        if (r == 0 && !cell_is_retiring(cell))
            r = pool_reserve(&cell->pool, nearest(range, cell->pool.size));
        if (r < 0)
            pool_set_size(&cell->pool, cell->pool.size);
    }
    return r;
}

void group_set_size(struct group *group, struct config_size range)
{
    group->size = group->cell ? nearest(range, group->cell->pool.size) : range.low;
    group_each_cell (cell, group) {
        if (cell_is_retiring(cell))
            continue; /* gets the new size if it is called back */
        cell_set_size(cell, nearest(range, cell->pool.size));
    }
    group_keep(group);
}

void group_note_size(struct cell *cell)
{
    if (!group_is_keyed(cell->group))
        cell->group->size = cell->pool.size;
    group_keep(cell->group);
}

static bool group_has_size(const struct group *group, size_t size)
{
    if (group->size != size)
        return false;
    group_each_cell (cell, group)
        if (cell_has_own_size(cell))
            return false;
    return true;
}

int group_resize(struct group *group, int64_t size)
{
    const struct config_size both = {(unsigned)size, (unsigned)size};
    size_t before = group->size;
    int r;

    if (config_is_elastic(group->config))
        return GROUP_E_ELASTIC;
    if (size < 1 || size > GROUP_SIZE_MAX)
        return GROUP_E_BAD_SIZE;
    if (group_has_size(group, (size_t)size))
        return 0;
    r = group_reserve(group, both);
    if (r < 0)
        return r;
    group_set_size(group, both);
    group_tell(group, LOG_LEVEL_NOTICE, "group.resized", "is resized from %zu to %lld", before,
               (long long)size);
    return 0;
}

int group_resize_cell(struct cell *cell, int64_t size)
{
    size_t before = cell->pool.size;
    int r;

    if (cell == cell->group->cell)
        return group_resize(cell->group, size);
    if (config_is_elastic(cell->config))
        return GROUP_E_ELASTIC;
    if (size < 1 || size > GROUP_SIZE_MAX)
        return GROUP_E_BAD_SIZE;
    if ((size_t)size == before)
        return 0;
    if (cell_is_retiring(cell)) {
        r = cell_call_back(cell);
        if (r < 0)
            return r;
    }
    r = pool_reserve(&cell->pool, (size_t)size);
    if (r < 0)
        return r;
    cell_set_size(cell, (size_t)size);
    pool_tell(&cell->pool, (struct event){.level = LOG_LEVEL_NOTICE, .type = "cell.resized"},
              "is resized from %zu to %lld", before, (long long)size);
    return 0;
}
