/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetStatus: one or all groups with their cells and workers, in parts
 * (request-parts.h). */

#include "shared/base/cleanup.h"
#include "supervisor/config/config.h"
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

struct status_walk {
    struct request_parts *parts;
    enum status_stage stage;
    bool all;                             /* groups; else only `group` */
    uint64_t group;                       /* its reference */
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of that group, or of the one written last */
    char *only_key;                       /* of the only cell; NULL = all */
    size_t first, n_slots;                /* of each pool: one worker, or all */
    bool brief;                           /* no cells and no workers */
    struct cell_cursor cells;
    const struct cell *cell; /* in STATUS_WORKER: the cursor's, valid only while they are equal */
    size_t worker;           /* cursor of pool_next_slot_of() */
    usec_t oldest;           /* queued job of the cells so far */
    uint64_t n_failing;      /* of the cells so far */
    char *failing;           /* the key of the first of these; NULL = none */
};

static struct group *group_of(const struct status_walk *walk)
{
    return registry_get(walk->parts->request->context->registry, walk->group);
}

static void open_group(struct status_walk *walk, const struct group *group)
{
    struct reply *reply = request_part_reply(walk->parts);

    report_group_begin(reply, walk->parts->request, group);
    reply_array(reply, "workers");
    if (!group_is_keyed(group))
        return;
    reply_end_array(reply);
    reply_uint(reply, "cells_total", group->cells.n_cells);
    reply_array(reply, "cells");
}

static void open_cell(struct status_walk *walk)
{
    report_cell_begin(request_part_reply(walk->parts), walk->cell);
    reply_array(request_part_reply(walk->parts), "workers");
}

/* Closes an array and the object around it. */
static void close_one(struct status_walk *walk)
{
    reply_end_array(request_part_reply(walk->parts));
    reply_end_object(request_part_reply(walk->parts));
}

/* Works also for a group that is gone: only keyed groups have walk->cell. */
static void close_all(struct status_walk *walk)
{
    if (walk->stage == STATUS_WORKER && walk->cell)
        close_one(walk);
    if (walk->stage != STATUS_GROUP)
        close_one(walk);
}

static void status_walk_pause(struct status_walk *walk)
{
    close_all(walk);
}

static void status_walk_resume(struct status_walk *walk)
{
    if (walk->stage == STATUS_GROUP)
        return;
    open_group(walk, group_of(walk));
    if (walk->stage == STATUS_WORKER && walk->cell)
        open_cell(walk);
}

static void end_group(struct status_walk *walk)
{
    struct reply *reply = request_part_reply(walk->parts);

    reply_end_array(reply);
    reply_uint_if(reply, "oldest_queued_at", walk->oldest);
    reply_uint_if(reply, "cells_failing", walk->n_failing);
    if (walk->failing)
        reply_string(reply, "failing_cell", walk->failing);
    reply_end_object(reply);
    walk->stage = STATUS_GROUP;
    walk->group = 0;
}

/* Whether there is another group. */
static bool next_group(struct status_walk *walk)
{
    struct registry *registry = walk->parts->request->context->registry;
    struct group *group = walk->all ? registry_after(registry, walk->name) : group_of(walk);

    if (!group)
        return false;
    walk->group = group->reference;
    (void)snprintf(walk->name, sizeof(walk->name), "%s", group->name);
    walk->oldest = 0;
    walk->n_failing = 0;
    free(TAKE_PTR(walk->failing));
    walk->worker = 0;
    walk->cell = NULL;
    open_group(walk, group);
    if (walk->brief) {
        end_group(walk);
        return true;
    }
    walk->stage = group_is_keyed(group) ? STATUS_CELL : STATUS_WORKER;
    if (group_is_keyed(group))
        cell_cursor_begin(&walk->cells, &group->cells);
    return true;
}

static bool is_shown(const struct status_walk *walk, const struct cell *cell)
{
    if (walk->only_key)
        return strcmp(cell->key, walk->only_key) == 0;
    return walk->parts->request->reply.size < REPORT_SINGLE_MAX - REPORT_DETAIL_MAX / 2;
}

static void look_at_oldest(struct status_walk *walk, const struct cell *cell)
{
    usec_t oldest = queue_oldest(&cell->queue);

    if (oldest != 0 && (walk->oldest == 0 || oldest < walk->oldest))
        walk->oldest = oldest;
}

/* Best effort: without memory, the number alone tells. */
static void look_at_state(struct status_walk *walk, const struct cell *cell)
{
    if (!cell_is_failing(cell))
        return;
    if (walk->n_failing++ == 0)
        walk->failing = strdup(cell->key);
}

/* ---- cells and workers ---- */

static void next_cell(struct status_walk *walk, const struct group *group)
{
    const struct cell *cell = walk->cells.next;

    if (!cell) {
        end_group(walk);
        return;
    }
    look_at_oldest(walk, cell);
    look_at_state(walk, cell);
    if (!is_shown(walk, cell)) {
        cell_cursor_advance(&walk->cells, &group->cells);
        return;
    }
    walk->cell = cell;
    open_cell(walk);
    walk->worker = 0;
    walk->stage = STATUS_WORKER;
}

static void end_workers(struct status_walk *walk, const struct group *group)
{
    if (!walk->cell) {
        look_at_oldest(walk, group->cell);
        end_group(walk);
        return;
    }
    close_one(walk);
    if (walk->cells.next == walk->cell)
        cell_cursor_advance(&walk->cells, &group->cells);
    walk->cell = NULL;
    walk->stage = STATUS_CELL;
}

static void next_worker(struct status_walk *walk, const struct group *group)
{
    struct reply *reply = request_part_reply(walk->parts);
    const struct cell *cell = walk->cell ? walk->cell : group->cell;
    bool gone = walk->cell && walk->cells.next != walk->cell;
    struct slot *slot =
        gone ? NULL : pool_next_slot_of(&cell->pool, walk->first, walk->n_slots, &walk->worker);

    if (!slot || (walk->cell && reply->size >= REPORT_DETAIL_MAX))
        end_workers(walk, group);
    else
        report_worker(reply, walk->parts->request, slot);
}

static bool status_walk_write(struct status_walk *walk)
{
    struct group *group;

    do {
        group = walk->stage == STATUS_GROUP ? NULL : group_of(walk);
        if (walk->stage == STATUS_GROUP) {
            if (!next_group(walk))
                return true;
        } else if (!group) {
            close_all(walk); /* the group ended, and its cells with it */
            walk->stage = STATUS_GROUP;
            cell_cursor_end(&walk->cells);
        } else if (walk->stage == STATUS_CELL) {
            next_cell(walk, group);
        } else {
            next_worker(walk, group);
        }
    } while (!request_part_full(walk->parts, 1));
    return false;
}

static int take_target(struct status_walk *walk, const struct registry_target *target)
{
    walk->group = target->group->reference;
    if (group_is_keyed(target->group) && target->cell) {
        walk->only_key = strdup(target->cell->key);
        if (!walk->only_key)
            return -ENOMEM;
    }
    if (target->slot) {
        walk->first = target->slot->index;
        walk->n_slots = 1;
    }
    return 0;
}

static int status_walk_init(struct status_walk *walk, struct request_parts *parts,
                            const struct registry_target *target, bool brief)
{
    *walk = (struct status_walk){
        .parts = parts,
        .all = !target,
        .n_slots = SIZE_MAX,
        .brief = brief,
    };
    list_init(&walk->cells.link);
    return target ? take_target(walk, target) : 0;
}

static void status_walk_deinit(struct status_walk *walk)
{
    cell_cursor_end(&walk->cells);
    free(TAKE_PTR(walk->only_key));
    free(TAKE_PTR(walk->failing));
}

/* ---- GetStatus ---- */

struct status {
    struct request_parts parts;
    struct status_walk walk;
};

#define status_of(pointer) list_entry(pointer, struct status, parts)

static bool write_status(struct request_parts *parts)
{
    return status_walk_write(&status_of(parts)->walk);
}

static void pause_status(struct request_parts *parts)
{
    status_walk_pause(&status_of(parts)->walk);
}

static void resume_status(struct request_parts *parts)
{
    status_walk_resume(&status_of(parts)->walk);
}

static void free_status(struct request_parts *parts)
{
    status_walk_deinit(&status_of(parts)->walk);
    free(status_of(parts));
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
    status->parts = (struct request_parts){
        .array = "groups",
        .may_continue = true,
        .write = write_status,
        .pause = pause_status,
        .resume = resume_status,
        .free = free_status,
    };
    if (status_walk_init(&status->walk, &status->parts, name ? &target : NULL,
                         request_bool(request, "brief")) < 0) {
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
