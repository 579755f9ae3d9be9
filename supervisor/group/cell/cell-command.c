/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/cell-command.h"

#include "shared/base/log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor.h"
#include "supervisor/pool/slot/slot.h"
#include <assert.h>

/* ---- the list ---- */

static void count(struct cell_heard *heard, const struct cell_command *command)
{
    switch (command->type) {
    case CELL_START:
    case CELL_STOP:
    case CELL_RESTART:
        heard->lives++;
        break;
    case CELL_PAUSE:
        heard->pauses += command->others;
        break;
    case CELL_RESIZE:
        heard->sizes++;
        break;
    case CELL_RECONFIGURE:
        heard->sizes += command->resizes;
        break;
    default:
        break;
    }
}

void cell_commands_add(struct cell_commands *commands, const struct cell_command *command)
{
    assert(commands->n < CELL_COMMANDS_MAX);
    commands->all[commands->n++] = *command;
    commands->end++;
    count(&commands->heard, command);
}

void cell_commands_clear(struct cell_commands *commands)
{
    while (commands->n > 0)
        config_group_free(commands->all[--commands->n].before);
}

/* ---- what a cell does ---- */

size_t cell_nearest_size(struct config_size range, size_t size)
{
    if (size < range.low)
        return range.low;
    return size < range.high ? size : range.high;
}

/* A cell that retires gets the new size if it is called back. */
static void resize(struct cell *cell, struct config_size range)
{
    const size_t size = cell_nearest_size(range, cell->pool.size);

    if (cell_is_retiring(cell))
        return;
    if (pool_reserve(&cell->pool, size) == 0)
        cell_set_size(cell, size);
    else
        log_error("%s: out of memory for %zu workers: it keeps %zu", cell->name, size,
                  cell->pool.size);
}

static void take_config(struct cell *cell, const struct cell_command *command)
{
    cell->config = command->config;
    cell->reconfigured = true;
    pool_take_config(&cell->pool, command->config);
    cell_progress_reset(cell);
    /* After that, so that new slots start by the new file. */
    if (command->resizes)
        resize(cell, command->range);
    if (command->rolls)
        pool_roll(&cell->pool);
    cell_review(cell);
}

static void unblock(struct cell *cell)
{
    if (!cell->pool.wanted)
        return;
    cell_start(cell);
    pool_roll_behind(&cell->pool);
}

static void log_messages(const struct cell *cell, uint8_t what)
{
    if (cell->pool.actor)
        cell->pool.actor->log = what;
    pool_each_slot (slot, &cell->pool)
        if (slot->actor)
            slot->actor->log = what;
}

static void stop_within(const struct cell *cell, usec_t time)
{
    pool_each_slot (slot, &cell->pool)
        slot_stop_within(slot, time);
}

static void carry_out(struct cell *cell, const struct cell_command *command)
{
    switch (command->type) {
    case CELL_START:
        cell_start(cell);
        break;
    case CELL_STOP:
        cell_stop(cell, command->hurry);
        break;
    case CELL_STOP_WITHIN:
        stop_within(cell, command->within);
        break;
    case CELL_RESTART:
        cell_restart(cell);
        break;
    case CELL_RESET:
        cell_reset(cell);
        break;
    case CELL_PAUSE:
        if (command->others || cell->pause != CELL_PAUSED)
            cell_set_pause(cell, command->pause);
        break;
    case CELL_WAKE:
        cell_wake(cell);
        break;
    case CELL_REVIEW:
        cell_review(cell);
        break;
    case CELL_OPEN:
        cell->closed = NULL;
        break;
    case CELL_UNBLOCK:
        unblock(cell);
        break;
    case CELL_RESIZE:
        resize(cell, command->range);
        break;
    case CELL_RECONFIGURE:
        take_config(cell, command);
        break;
    case CELL_LOG_MESSAGES:
        log_messages(cell, command->log);
        break;
    }
}

/* A command may touch the cell again. */
void cell_catch_up(struct cell *cell)
{
    struct cell_commands *commands = &cell->group->commands;

    if (!cell_is_behind(cell, commands))
        return;
    while (cell_is_behind(cell, commands)) {
        const struct cell_command command =
            commands->all[commands->n - (commands->end - cell->next_command)];

        cell->next_command++;
        count(&cell->heard, &command);
        carry_out(cell, &command);
    }
    cell_keep(cell);
    cell_watch_idle(cell);
}
