/* SPDX-License-Identifier: MIT */
/* Sizes of the pools of a group. */

#include "supervisor/group/group-private.h"

int group_reserve(struct group *group, struct config_size range)
{
    struct pool *pool = group->cell ? &group->cell->pool : NULL;

    return pool ? pool_reserve(pool, cell_nearest_size(range, pool->size)) : 0;
}

void group_choose_size(struct group *group, struct config_size range)
{
    group->size = group->cell ? cell_nearest_size(range, group->cell->pool.size) : range.low;
}

void group_note_size(struct cell *cell)
{
    if (!group_is_keyed(cell->group))
        cell->group->size = cell->pool.size;
    group_keep(cell->group);
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
    r = group_reserve(group, both);
    if (r < 0)
        return r;
    group->size = (size_t)size;
    group_command(group, &(struct cell_command){.type = CELL_RESIZE, .range = both});
    if (before == (size_t)size)
        return 0; /* only cells with a size of their own have changed */
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
