/* SPDX-License-Identifier: MIT */

/* Workers of an earlier supervisor, and their jobs in hand, continue. */

#include "shared/base/cleanup.h"
#include "shared/ring/memory.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/process.h"
#include <stdlib.h>
#include <string.h>

/* Finds the cell of a worker or of a kept state by its name, or makes it. `*ret_number` is what
 * follows the cell's name. Returns NULL if the group has no such cell. */
static struct cell *make_cell(struct group *group, const char *name, const char **ret_number)
{
    const char *key = name + strlen(group->name) + 1, *slash = strchr(key, '/');
    const size_t size = slash ? (size_t)(slash - key) : 0;
    struct cell *cell;

    if (group_is_keyed(group) != (slash != NULL))
        return NULL;
    *ret_number = slash ? slash + 1 : key;
    if (group_resume_cell(group, key, size, &cell) < 0)
        log_error("%s: out of memory making its cell again", name);
    return cell;
}

/* Makes the place of a worker that has outlived the last supervisor, whether it is wanted or not.
 */
static void make_place(struct group *group, const char *name)
{
    const char *number;
    struct cell *cell = make_cell(group, name, &number);
    const unsigned long index = cell ? strtoul(number, NULL, 10) : 0;

    if (cell && index < GROUP_SIZE_MAX && pool_reserve(&cell->pool, index + 1) < 0)
        log_error("%s: out of memory making its place again", name);
}

static void make_places(const struct group_context *context)
{
    static const enum holding_kind kinds[] = {HOLDING_WORKER, HOLDING_SERVICE};
    const struct held_table *table = &context->pools->process->held;

    for (size_t i = 0; i < ELEMENTS(kinds); i++)
        for (const struct held *held = NULL; (held = held_next(table, kinds[i], held));) {
            struct group *group = registry_group_of(context->registry, held->name);

            if (group && (group->config->type == CONFIG_ACTOR) == (kinds[i] == HOLDING_WORKER))
                make_place(group, held->name);
        }
}

/* Makes the cells that the last supervisor had; or notes the generations of its other slots. */
static void take_left(const struct group_context *context, bool cells)
{
    const struct kept_states *kept = &context->pools->process->kept;
    const struct kept_state *state;
    const char *number;

    for (uint32_t cursor = 0; (state = kept_states_next(kept, &cursor));) {
        const char *slash = strrchr(state->name, '/');
        struct group *group = slash ? registry_group_of(context->registry, state->name) : NULL;

        if (!group || cells != (slash[1] == '\0'))
            continue;
        if (cells)
            (void)make_cell(group, state->name, &number);
        else
            slot_note_left(&group->pools, state);
    }
}

/* Whether jobs run is known at the end of the turn, when slots that are not wanted are freed. */
static void resume_workers(struct group *group)
{
    group_each_cell (cell, group) {
        pool_resume(&cell->pool);
        cell_watch_idle(cell);
        cell_keep(cell);
        cell_wake(cell);
    }
    group->resumes = false;
    group_keep(group);
}

static void keep_missed(void *userdata, const struct memory_job *entry)
{
    cell_keep_missed(userdata, (const struct job_page *)(const void *)entry->kept);
}

/* Keeps the attempts of workers that were not taken over: there was no memory for their place, or
 * their group is gone. */
static void keep_attempts_of_rest(const struct group_context *context)
{
    const struct held_table *table = &context->pools->process->held;

    for (const struct held *held = NULL; (held = held_next(table, HOLDING_WORKER, held));)
        if (held->n_fds > 0)
            (void)memory_scan_jobs(held->fds[0], keep_missed, (void *)(uintptr_t)context);
}

static void on_worker_ends(void *userdata, const char *name, int change)
{
    const struct group_context *context = userdata;
    struct group *group = registry_group_of(context->registry, name);

    if (!group)
        return;
    limits_note_ending(&group->limits, change);
    if (group->limits.n_ending == 0)
        group_wake_cells(group);
}

void groups_resume(const struct group_context *context)
{
    struct held_table *held = &context->pools->process->held;

    held->worker_ends = on_worker_ends;
    held->userdata = (void *)(uintptr_t)context;
    registry_each_group (group, context->registry)
        group_resume(group);
    take_left(context, true);
    registry_each_group (group, context->registry)
        group_each_cell (cell, group)
            cell_resume(cell);
    make_places(context);
    take_left(context, false);
    registry_each_group (group, context->registry)
        resume_workers(group);
    keep_attempts_of_rest(context);
}

void groups_remove_missing(const struct group_context *context)
{
    registry_each_group (group, context->registry)
        if (group->config->missing)
            group_remove(group);
}
