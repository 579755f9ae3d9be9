/* SPDX-License-Identifier: MIT */
#include "cell.h"
#include "context.h"
#include "group.h"
#include "slot.h"
#include <stdio.h>

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

void cell_count(const struct cell *cell, struct cell_census *census)
{
    const struct slot *slot;
    size_t cursor = 0;

    while ((slot = cell_next_slot(cell, &cursor))) {
        bool failed = slot->state == LIFECYCLE_FAILED;
        census->n_slots++;
        census->n_down += slot_is_down(slot);
        census->n_failed += failed;
        census->n_trouble += failed || slot->state == LIFECYCLE_BACKOFF;
    }
}

const char *cell_census_state(const struct cell_census *census, bool paused)
{
    if (census->n_down == census->n_slots)
        return census->n_failed > 0 ? "failed" : "stopped";
    if (census->n_trouble > 0)
        return "degraded";
    return paused ? "paused" : "running";
}

const char *cell_state(const struct cell *cell)
{
    struct cell_census census = {0};

    cell_count(cell, &census);
    return cell->retiring ? "retiring" : cell_census_state(&census, cell->paused);
}

bool cell_down(const struct cell *cell)
{
    const struct slot *slot;
    size_t cursor = 0;

    while ((slot = cell_next_slot(cell, &cursor)))
        if (!slot_is_down(slot))
            return false;
    return true;
}
