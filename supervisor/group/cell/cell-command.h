/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Commands to all cells of a group. There may be very many cells, so a command is only noted, at
 * the group. Each cell carries out all commands in their order: when it is touched, or when
 * group-command.c, which visits all cells in several turns, comes to it. So whoever finds a cell
 * finds it as the commands have left it.
 */

#include "supervisor/config/config.h"
#include "supervisor/group/cell/cell.h"
#include <stdbool.h>
#include <stdint.h>

enum cell_command_type {
    CELL_START,
    CELL_STOP,
    CELL_STOP_WITHIN, /* a time that replaces that of a stop */
    CELL_RESTART,
    CELL_RESET,
    CELL_PAUSE,
    CELL_WAKE,
    CELL_REVIEW,  /* senders try again */
    CELL_OPEN,    /* no cell is closed alone */
    CELL_UNBLOCK, /* the fault of the configuration is gone */
    CELL_RESIZE,
    CELL_RECONFIGURE,
    CELL_LOG_MESSAGES,
};

/* Only the members of its type count. */
struct cell_command {
    enum cell_command_type type;
    bool hurry;               /* of a stop */
    bool others;              /* CELL_PAUSE: includes cells that were paused individually */
    bool resizes, rolls;      /* CELL_RECONFIGURE */
    uint8_t log;              /* enum actor_log */
    enum cell_pause pause;    /* CELL_PAUSE */
    usec_t within;            /* CELL_STOP_WITHIN */
    struct config_size range; /* CELL_RESIZE, and with `resizes` */
    const struct config_group *config;
    struct config_group *before; /* CELL_RECONFIGURE: owned; cells have it until they come to it */
};

/* The next command ends the wait of those that some cells have not carried out. */
#define CELL_COMMANDS_MAX 16

struct cell_commands {
    struct cell_command all[CELL_COMMANDS_MAX]; /* those that some cells have not carried out */
    uint64_t end;                               /* the number of the next one */
    unsigned n;
    struct cell_heard heard; /* counts all */
};

void cell_commands_add(struct cell_commands *commands, const struct cell_command *command);
/* All cells have carried them out. */
void cell_commands_clear(struct cell_commands *commands);

static inline bool cell_is_behind(const struct cell *cell, const struct cell_commands *commands)
{
    return cell->next_command != commands->end;
}

/* Carries out the commands to its group that the cell has not carried out yet. */
void cell_catch_up(struct cell *cell);

/* Returns the size of this range that is nearest. */
size_t cell_nearest_size(struct config_size range, size_t size);
