/* SPDX-License-Identifier: MIT */

/* Safe mode: the supervisor has crashed again and again, perhaps because of a job or a message. It
 * lets workers and services run on, and pauses all groups until somebody has looked at it. */

#include "supervisor/event/event-id.h"
#include "supervisor/group/group.h"
#include "supervisor/supervisor-private.h"

static void hold_back_all(struct supervisor *supervisor, bool held_back)
{
    struct registry *registry = &supervisor->parts.registry;
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(registry, &cursor)))
        group_hold_back(group, held_back);
}

void supervisor_enter_safe_mode(struct supervisor *supervisor)
{
    if (!supervisor->parts.control.predecessors.safe_mode)
        return;
    event_emit(&supervisor->parts.events,
               (struct event){
                   .level = LOG_LEVEL_ERROR,
                   .type = "supervisor.safe-mode",
                   .message_id = EVENT_ID_SAFE_MODE,
                   .message = "safe mode after several crashes: all groups are paused until "
                              "troupectl reload",
               });
    hold_back_all(supervisor, true);
}

bool supervisor_leave_safe_mode(struct supervisor *supervisor)
{
    struct control_context *control = &supervisor->parts.control;

    spawner_forgive(&supervisor->parts.process.spawner);
    if (!control->predecessors.safe_mode)
        return false;
    control->predecessors.safe_mode = false;
    event_emit(&supervisor->parts.events, (struct event){
                                              .level = LOG_LEVEL_NOTICE,
                                              .type = "supervisor.safe-mode-ended",
                                              .message = "safe mode has ended",
                                          });
    hold_back_all(supervisor, false);
    return true;
}
