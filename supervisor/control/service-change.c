/* SPDX-License-Identifier: MIT */
#include "supervisor/control/service-change.h"

#include "supervisor/config/syntax/strings.h"

void reload_call_init(struct reload_call *call, void (*done)(struct reload_call *call))
{
    *call = (struct reload_call){.done = done};
    list_init(&call->link);
}

void reload_call_deinit(struct reload_call *call)
{
    struct reload_changes *changes = &call->changes;

    list_unlink(&call->link);
    changes->added = strv_free(changes->added);
    changes->removed = strv_free(changes->removed);
    changes->changed = strv_free(changes->changed);
    config_problems_deinit(&call->problems);
    config_problems_deinit(&call->faults);
}
