/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetStatus: one or all groups with their cells and workers. */

#include "supervisor/control/interfaces.h"
#include "supervisor/control/supervisor/status-walk.h"
#include "supervisor/control/target.h"
#include <errno.h>
#include <stdlib.h>

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

struct status_parameters {
    const char *target;
    bool brief;
};

static void get_status(struct request *request)
{
    const struct status_parameters *given = request->parameters;
    struct registry_target target;
    struct status *status;

    if (given->target && !control_find_target(request, given->target, &target))
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
    if (status_walk_init(&status->walk, &status->parts, given->target ? &target : NULL,
                         given->brief) < 0) {
        free_status(&status->parts);
        request_internal(request, -ENOMEM);
        return;
    }
    request_in_parts(request, &status->parts);
}

static const struct varlink_parameter status_table[] = {
    VARLINK_ROW("target", STRING, status_parameters, target),
    VARLINK_ROW("brief", BOOL, status_parameters, brief),
    {0},
};

const struct request_method control_status_methods[] = {
    {"GetStatus", get_status, status_table, .changes = false, .always = true},
    {0},
};
