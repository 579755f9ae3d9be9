/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.Explain: what a group, cell or worker waits for. */

#include "supervisor/control/interfaces.h"
#include "supervisor/control/target.h"
#include "supervisor/control/waits.h"
#include "supervisor/group/group.h"

struct explain_parameters {
    const char *target;
};

static void explain(struct request *request)
{
    const struct explain_parameters *given = request->parameters;
    struct registry_target target;
    struct reply *reply;

    if (!control_find_target(request, given->target, &target))
        return;
    reply = request_begin(request);
    if (target.slot)
        waits_of_slot(reply, "waits", target.slot);
    else if (target.cell)
        waits_of_cell(reply, "waits", target.cell);
    else
        waits_of_group(reply, "waits", target.group);
    request_end(request);
}

static const struct varlink_parameter explain_table[] = {
    VARLINK_ROW("target", STRING, explain_parameters, target, .required = true),
    {0},
};

const struct request_method control_explain_methods[] = {
    {"Explain", explain, explain_table, .changes = false},
    {0},
};
