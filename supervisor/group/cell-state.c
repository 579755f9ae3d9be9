/* SPDX-License-Identifier: MIT */
#include "supervisor/context.h"
#include "supervisor/group/cell-private.h"
#include "supervisor/group/group.h"
#include <stdio.h>
#include <string.h>

void cell_add_running(struct cell *cell, int change)
{
    cell->n_running += (uint64_t)(int64_t)change;
    cell->group->n_running += (uint64_t)(int64_t)change;
}

void cell_add_backoff(struct cell *cell, int change)
{
    cell->n_backoff += (uint64_t)(int64_t)change;
    cell->group->n_backoff += (uint64_t)(int64_t)change;
}

void cell_add_waiter(struct cell *cell, int change)
{
    cell->n_waiters += (uint64_t)(int64_t)change;
    cell->group->n_waiters += (uint64_t)(int64_t)change;
}

const char *cell_event_name(const struct cell *cell)
{
    return *cell->key ? cell->name : NULL;
}

void cell_tell(struct cell *cell, enum log_level level, const char *type, const char *message_id,
               const char *text)
{
    char message[CELL_NAME_MAX + 256];

    (void)snprintf(message, sizeof(message), "%s %s", cell->name, text);
    event_emit(&cell->context->events, (struct event){
                                           .level = level,
                                           .type = type,
                                           .group = cell->group->name,
                                           .cell = cell_event_name(cell),
                                           .message_id = message_id,
                                           .message = message,
                                       });
}

const char *cell_state(const struct cell *cell)
{
    const char *state = census_state(&cell->census, cell->paused);
    bool down = census_down(&cell->census) || strcmp(state, "stopping") == 0;

    if (cell->retiring)
        return "retiring";
    return !down && outcomes_failing(&cell->outcomes) ? "failing" : state;
}
