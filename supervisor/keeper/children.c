/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/children.h"

bool children_have_room(const struct children *children)
{
    return children->pids.n + 2 <= ID_TABLE_MAX;
}

void children_add(struct children *children, pid_t pid, uint64_t id, bool contained)
{
    children_remove(children, pid);
    const int place = id_table_add(&children->pids, (uint64_t)pid);
    if (place >= 0)
        children->at[place] = (struct child){.pid = pid, .id = id, .contained = contained};
}

struct child *children_find(struct children *children, pid_t pid)
{
    const int place = id_table_find(&children->pids, (uint64_t)pid);
    return place < 0 ? NULL : &children->at[place];
}

void children_remove(struct children *children, pid_t pid)
{
    (void)id_table_remove(&children->pids, (uint64_t)pid);
}
