/* SPDX-License-Identifier: MIT */

/* Opens the history once a group has History=, or its file exists, and reports its state. */

#include "shared/base/cleanup.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/group.h"
#include "supervisor/history/history.h"
#include "supervisor/supervisor-private.h"
#include <string.h>
#include <unistd.h>

#define HISTORY_FILE "history.db"

static void on_changed(void *userdata)
{
    struct supervisor *supervisor = userdata;
    const char *problem = history_problem(supervisor->parts.control.history);

    if (*problem != '\0')
        event_emit(&supervisor->parts.events, (struct event){.level = LOG_LEVEL_ERROR,
                                                             .type = "history.failed",
                                                             .message_id = EVENT_ID_HISTORY,
                                                             .message = problem});
    else
        event_emit(&supervisor->parts.events,
                   (struct event){.level = LOG_LEVEL_NOTICE,
                                  .type = "history.open",
                                  .message = "the history of ended jobs is open again"});
}

static void open_history(struct supervisor *supervisor, bool needed)
{
    const struct config_daemon *config = supervisor->parts.control.config;
    _cleanup_free_ char *path = supervisor_state_file(config, HISTORY_FILE);
    struct history_options options = {
        .path = path,
        .changed = on_changed,
        .settled = supervisor_on_settled,
        .userdata = supervisor,
    };
    int r;

    if (!path || (!needed && !(supervisor_has_state_directory(config) && access(path, F_OK) == 0)))
        return;
    r = history_new(&supervisor->parts.control.history, loop_of(supervisor), &options);
    if (r < 0)
        log_error("cannot start the history of ended jobs: %s", strerror(-r));
}

static void use(struct group *group, struct history *history)
{
    const struct config_group *config = group->config;

    group->past =
        history && config->history > 0 &&
                history_use(history, group->name, config->history, config->history_max) == 0
            ? history
            : NULL;
}

void supervisor_open_history(struct supervisor *supervisor)
{
    const struct registry *registry = &supervisor->parts.registry;
    bool needed = false;

    registry_each_group (group, registry)
        needed = needed || group->config->history > 0;
    if (!supervisor->parts.control.history)
        open_history(supervisor, needed);
    registry_each_group (group, registry)
        use(group, supervisor->parts.control.history);
}

void supervisor_close_history(struct supervisor *supervisor)
{
    struct history *history = TAKE_PTR(supervisor->parts.control.history);

    registry_each_group (group, &supervisor->parts.registry)
        use(group, NULL);
    if (history && !store_has_ended(history_store(history)))
        history_abandon(history);
    else
        (void)history_free(history);
}
