/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetStatus: one or all groups with their cells and workers. */

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next thing to write. */
enum stage {
    STAGE_GROUP,
    STAGE_CELL,   /* within a group */
    STAGE_WORKER, /* within a cell, or within a group that has no keys */
};

struct status {
    struct request_parts parts;
    enum stage stage;
    bool all;                             /* groups; else only `group` */
    uint64_t group;                       /* its reference */
    char name[CONFIG_GROUP_NAME_MAX + 1]; /* of that group, or of the one written last */
    char *only_key;                       /* of the only cell; NULL = all */
    size_t first, n_slots;                /* of each pool: one worker, or all */
    json_t *only; /* names right below the target: slots of a pool, or cells; NULL = all */
    size_t at;    /* of `only` */
    bool brief;
    struct cell_cursor cells;
    const struct cell *cell; /* in STAGE_WORKER: the cursor's, valid only while they are equal */
    size_t worker;           /* cursor of pool_next_slot_of() */
    usec_t oldest;           /* queued job of the cells so far */
    uint64_t n_failing;      /* of the cells so far */
    char *failing;           /* the key of the first of these; NULL = none */
};

#define status_of(parts) list_entry(parts, struct status, parts)

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
    if (status->stage == STAGE_WORKER && status->cell)
        close_one(status);
    if (status->stage != STAGE_GROUP)
        close_one(status);
}

static void pause_status(struct request_parts *parts)
{
    close_all(status_of(parts));
}

static void resume_status(struct request_parts *parts)
{
    struct status *status = status_of(parts);

    if (status->stage == STAGE_GROUP)
        return;
    open_group(status, group_of(status));
    if (status->stage == STAGE_WORKER && status->cell)
        open_cell(status);
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
    status->oldest = 0;
    status->n_failing = 0;
    free(TAKE_PTR(status->failing));
    status->worker = 0;
    status->cell = NULL;
    status->at = 0;
    open_group(status, group);
    status->stage = group_is_keyed(group) ? STAGE_CELL : STAGE_WORKER;
    if (group_is_keyed(group))
        cell_cursor_begin(&status->cells, &group->cells);
    return true;
}

static void end_group(struct status *status)
{
    struct reply *reply = request_part_reply(&status->parts);

    reply_end_array(reply);
    reply_uint_if(reply, "oldest_queued_at", status->oldest);
    reply_uint_if(reply, "cells_failing", status->n_failing);
    if (status->failing)
        reply_string(reply, "failing_cell", status->failing);
    reply_end_object(reply);
    status->stage = STAGE_GROUP;
    status->group = 0;
}

static bool is_shown(const struct status *status, const struct cell *cell)
{
    if (status->only_key)
        return strcmp(cell->key, status->only_key) == 0;
    return status->parts.request->reply.size < REPORT_SINGLE_MAX - REPORT_DETAIL_MAX / 2;
}

static void look_at_oldest(struct status *status, const struct cell *cell)
{
    usec_t oldest = queue_oldest(&cell->queue);

    if (oldest != 0 && (status->oldest == 0 || oldest < status->oldest))
        status->oldest = oldest;
}

/* Best effort: without memory, the number alone tells. */
static void look_at_state(struct status *status, const struct cell *cell)
{
    if (!cell_is_failing(cell))
        return;
    if (status->n_failing++ == 0)
        status->failing = strdup(cell->key);
}

/* ---- only some of them ---- */

/* Whether `only` names cells. */
static bool names_cells(const struct status *status, const struct group *group)
{
    return status->only && group_is_keyed(group) && !status->only_key;
}

/* The next cell that is named and exists. */
static const struct cell *next_named_cell(struct status *status, const struct group *group)
{
    const size_t n = json_array_size(status->only);

    cell_cursor_end(&status->cells);
    for (; status->at < n; status->at++) {
        const json_t *key = json_array_get(status->only, status->at);
        struct cell *cell =
            cell_table_find(&group->cells, json_string_value(key), json_string_length(key));

        if (!cell)
            continue;
        cell_cursor_at(&status->cells, cell);
        return cell;
    }
    return NULL;
}

/* Of a slot in its pool; SIZE_MAX = it is none. */
static size_t slot_number(const char *name)
{
    unsigned long number;
    char *end;

    if (*name < '0' || *name > '9')
        return SIZE_MAX;
    errno = 0;
    number = strtoul(name, &end, 10);
    return errno == 0 && *end == '\0' ? number : SIZE_MAX;
}

static struct slot *next_named_slot(struct status *status, const struct pool *pool)
{
    for (; status->at < json_array_size(status->only); status->at++) {
        const char *name = json_string_value(json_array_get(status->only, status->at));
        struct slot *slot = pool_next_slot_of(pool, slot_number(name), 1, &status->worker);

        if (slot)
            return slot;
        status->worker = 0;
    }
    return NULL;
}

static struct slot *next_slot(struct status *status, const struct group *group,
                              const struct pool *pool)
{
    if (status->only && !names_cells(status, group))
        return next_named_slot(status, pool);
    return pool_next_slot_of(pool, status->first, status->n_slots, &status->worker);
}

/* ---- cells and workers ---- */

static void advance_cell(struct status *status, const struct group *group)
{
    if (names_cells(status, group))
        status->at++;
    else
        cell_cursor_advance(&status->cells, &group->cells);
}

static void next_cell(struct status *status, const struct group *group)
{
    const struct cell *cell =
        names_cells(status, group) ? next_named_cell(status, group) : status->cells.next;

    if (!cell) {
        end_group(status);
        return;
    }
    look_at_oldest(status, cell);
    look_at_state(status, cell);
    if (!is_shown(status, cell)) {
        advance_cell(status, group);
        return;
    }
    status->cell = cell;
    open_cell(status);
    status->worker = 0;
    status->stage = STAGE_WORKER;
}

static void end_workers(struct status *status, const struct group *group)
{
    if (!status->cell) {
        look_at_oldest(status, group->cell);
        end_group(status);
        return;
    }
    close_one(status);
    if (status->cells.next == status->cell || names_cells(status, group))
        advance_cell(status, group);
    status->cell = NULL;
    status->stage = STAGE_CELL;
}

static void next_worker(struct status *status, const struct group *group)
{
    struct reply *reply = request_part_reply(&status->parts);
    const struct cell *cell = status->cell ? status->cell : group->cell;
    bool gone = status->cell && status->cells.next != status->cell;
    struct slot *slot = gone ? NULL : next_slot(status, group, &cell->pool);

    if (!slot || (status->cell && reply->size >= REPORT_DETAIL_MAX))
        end_workers(status, group);
    else
        report_worker(reply, status->parts.request, slot, status->brief);
}

static bool write_status(struct request_parts *parts)
{
    struct status *status = status_of(parts);
    struct group *group;

    do {
        group = status->stage == STAGE_GROUP ? NULL : group_of(status);
        if (status->stage == STAGE_GROUP) {
            if (!next_group(status))
                return true;
        } else if (!group) {
            close_all(status); /* the group ended, and its cells with it */
            status->stage = STAGE_GROUP;
            cell_cursor_end(&status->cells);
        } else if (status->stage == STAGE_CELL) {
            next_cell(status, group);
        } else {
            next_worker(status, group);
        }
    } while (!request_part_full(parts, 1));
    return false;
}

static void free_status(struct request_parts *parts)
{
    struct status *status = status_of(parts);

    cell_cursor_end(&status->cells);
    json_decref(status->only);
    free(status->only_key);
    free(status->failing);
    free(status);
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

struct status_parameters {
    const char *target;
    json_t *only;
    bool brief;
};

static void get_status(struct request *request)
{
    const struct status_parameters *given = request->parameters;
    struct registry_target target;
    struct status *status;

    if (given->target && !control_find_target(request, given->target, &target))
        return;
    if (given->only && (!given->target || target.slot)) {
        request_refuse(request, "only", "with a target that is a group or a cell");
        return;
    }
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
    status->all = !given->target;
    status->n_slots = SIZE_MAX;
    status->only = json_incref(given->only);
    status->brief = given->brief;
    list_init(&status->cells.link);
    if (given->target && take_target(status, &target) < 0) {
        free_status(&status->parts);
        request_internal(request, -ENOMEM);
        return;
    }
    request_in_parts(request, &status->parts);
}

static const struct varlink_parameter status_table[] = {
    VARLINK_ROW("target", STRING, status_parameters, target),
    VARLINK_ROW("only", LIST, status_parameters, only),
    VARLINK_ROW("brief", BOOL, status_parameters, brief),
    {0},
};

const struct request_method control_status_methods[] = {
    {"GetStatus", get_status, status_table, .changes = false, .always = true},
    {0},
};
