/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetStatus: one or all groups with their cells and workers, in parts
 * (request-parts.h). */

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/cell/cell-table.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next thing to write. */
enum status_stage {
    STATUS_GROUP,
    STATUS_CELL,   /* within a group */
    STATUS_WORKER, /* within a cell, or within a group that has no keys */
};

struct status {
    struct request_parts parts;
    enum status_stage stage;
    bool all;                             /* groups; else only `group` */
    uint64_t group;                       /* its reference */
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of that group, or of the one written last */
    char *only_key;                       /* of the only cell; NULL = all */
    size_t first, n_slots;                /* of each pool: one worker, or all */
    bool brief;                           /* no cells and no workers */
    struct list_cursor cells;
    const struct cell *cell; /* in STATUS_WORKER: the cursor's, valid only while they are equal */
    size_t worker;           /* cursor of pool_next_slot_of() */
    uint64_t n_failing;      /* of the cells so far */
    char *failing;           /* the key of the first of these; NULL = none */
};

#define status_of(pointer) list_entry(pointer, struct status, parts)

static struct group *group_of(const struct status *status)
{
    return registry_get(status->parts.request->context->registry, status->group);
}

static void open_group(struct status *status, const struct group *group)
{
    struct reply *reply = request_part_reply(&status->parts);

    report_group_begin(reply, status->parts.request, group);
    reply_array(reply, "workers");
    if (!group_is_keyed(group))
        return;
    reply_end_array(reply);
    reply_uint(reply, "cells_total", group->cells.n_cells);
    reply_array(reply, "cells");
}

static void open_cell(struct status *status)
{
    report_cell_begin(request_part_reply(&status->parts), status->cell);
    reply_array(request_part_reply(&status->parts), "workers");
}

/* Closes an array and the object around it. */
static void close_one(struct status *status)
{
    reply_end_array(request_part_reply(&status->parts));
    reply_end_object(request_part_reply(&status->parts));
}

/* Works also for a group that is gone: only keyed groups have status->cell. */
static void close_all(struct status *status)
{
    if (status->stage == STATUS_WORKER && status->cell)
        close_one(status);
    if (status->stage != STATUS_GROUP)
        close_one(status);
}

static void pause_status(struct request_parts *parts)
{
    close_all(status_of(parts));
}

static void resume_status(struct request_parts *parts)
{
    struct status *status = status_of(parts);

    if (status->stage == STATUS_GROUP)
        return;
    open_group(status, group_of(status));
    if (status->stage == STATUS_WORKER && status->cell)
        open_cell(status);
}

static void end_group(struct status *status)
{
    struct reply *reply = request_part_reply(&status->parts);

    reply_end_array(reply);
    reply_uint_if(reply, "cells_failing", status->n_failing);
    if (status->failing)
        reply_string(reply, "failing_cell", status->failing);
    reply_end_object(reply);
    status->stage = STATUS_GROUP;
    status->group = 0;
}

/* Whether there is another group. */
static bool next_group(struct status *status)
{
    struct registry *registry = status->parts.request->context->registry;
    struct group *group = status->all ? registry_after(registry, status->name) : group_of(status);

    if (!group)
        return false;
    status->group = group->reference;
    (void)snprintf(status->name, sizeof(status->name), "%s", group->name);
    status->n_failing = 0;
    free(TAKE_PTR(status->failing));
    status->worker = 0;
    status->cell = NULL;
    open_group(status, group);
    if (status->brief) {
        end_group(status);
        return true;
    }
    status->stage = group_is_keyed(group) ? STATUS_CELL : STATUS_WORKER;
    list_cursor_end(&status->cells);
    list_cursor_begin(&status->cells, &group->cells.cursors, &group->cells.cells, false);
    return true;
}

static bool is_shown(const struct status *status, const struct cell *cell)
{
    if (status->only_key)
        return strcmp(cell->key, status->only_key) == 0;
    return status->parts.request->reply.size < REPORT_SINGLE_MAX - REPORT_DETAIL_MAX / 2;
}

/* Best effort: without memory, the number alone tells. */
static void look_at_state(struct status *status, const struct cell *cell)
{
    if (!cell_is_failing(cell))
        return;
    if (status->n_failing++ == 0)
        status->failing = strdup(cell->key);
}

/* ---- cells and workers ---- */

static void next_cell(struct status *status, const struct group *group)
{
    struct cell *cell = cell_table_at(&group->cells, &status->cells);

    if (!cell) {
        end_group(status);
        return;
    }
    cell_catch_up(cell);
    look_at_state(status, cell);
    if (!is_shown(status, cell)) {
        list_cursor_advance(&status->cells);
        return;
    }
    status->cell = cell;
    open_cell(status);
    status->worker = 0;
    status->stage = STATUS_WORKER;
}

static void end_workers(struct status *status, const struct group *group)
{
    if (!status->cell) {
        end_group(status);
        return;
    }
    close_one(status);
    if (cell_table_at(&group->cells, &status->cells) == status->cell)
        list_cursor_advance(&status->cells);
    status->cell = NULL;
    status->stage = STATUS_CELL;
}

static void next_worker(struct status *status, const struct group *group)
{
    struct reply *reply = request_part_reply(&status->parts);
    const struct cell *cell = status->cell ? status->cell : group->cell;
    bool gone = status->cell && cell_table_at(&group->cells, &status->cells) != status->cell;
    struct slot *slot =
        gone ? NULL
             : pool_next_slot_of(&cell->pool, status->first, status->n_slots, &status->worker);

    if (!slot || (status->cell && reply->size >= REPORT_DETAIL_MAX))
        end_workers(status, group);
    else
        report_worker(reply, status->parts.request, slot);
}

static bool step(struct request_parts *parts)
{
    struct status *status = status_of(parts);
    struct group *group = status->stage == STATUS_GROUP ? NULL : group_of(status);

    if (status->stage == STATUS_GROUP)
        return next_group(status);
    if (!group) {
        close_all(status); /* the group ended, and its cells with it */
        status->stage = STATUS_GROUP;
        list_cursor_end(&status->cells);
    } else if (status->stage == STATUS_CELL) {
        next_cell(status, group);
    } else {
        next_worker(status, group);
    }
    return true;
}

static int take_target(struct status *status, const struct registry_target *target)
{
    status->group = target->group->reference;
    if (group_is_keyed(target->group) && target->cell) {
        status->only_key = strdup(target->cell->key);
        if (!status->only_key)
            return -ENOMEM;
    }
    if (target->slot) {
        status->first = target->slot->index;
        status->n_slots = 1;
    }
    return 0;
}

static void free_status(struct request_parts *parts)
{
    struct status *status = status_of(parts);

    list_cursor_end(&status->cells);
    free(status->only_key);
    free(status->failing);
    free(status);
}

static void get_status(struct request *request)
{
    const char *name = request_string(request, "target");
    struct registry_target target;
    struct status *status;

    if (name && !control_find_target(request, name, &target))
        return;
    status = request_allocate(request, sizeof(*status));
    if (!status)
        return;
    status->all = !name;
    status->n_slots = SIZE_MAX;
    status->brief = request_bool(request, "brief");
    list_init(&status->cells.link);
    status->parts = (struct request_parts){
        .array = "groups",
        .may_continue = true,
        .step = step,
        .pause = pause_status,
        .resume = resume_status,
        .free = free_status,
    };
    if (name && take_target(status, &target) < 0) {
        free_status(&status->parts);
        request_internal(request, -ENOMEM);
        return;
    }
    request_in_parts(request, &status->parts);
}

const struct request_method control_status_methods[] = {
    {"GetStatus", get_status, .changes = false, .always = true},
    {0},
};
