/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-command.h"

#include "shared/base/fault.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"

/* Cells that are visited in one turn, of all groups; the slots of a cell with something to do cost
 * as much as cells. */
#define VISITS_PER_TURN 1024u

static struct group_walks *walks_of(const struct group *group)
{
    return &group->context->registry->walks;
}

static void begin_round(struct group *group)
{
    struct group_visits *visits = &group->visits;

    list_cursor_end(&visits->cells);
    list_cursor_begin(&visits->cells, &group->cells.cursors, &group->cells.cells, false);
    visits->end = group->commands.end;
}

static void end(struct group *group)
{
    list_unlink(&group->visits.link);
    list_cursor_end(&group->visits.cells);
    cell_commands_clear(&group->commands);
}

/* Returns what it costs; 0 = all cells have carried out all commands. */
static unsigned visit_next(struct group *group)
{
    struct group_visits *visits = &group->visits;
    struct cell *cell = cell_table_at(&group->cells, &visits->cells);
    unsigned cost = 1;

    if (!cell && visits->end == group->commands.end)
        return 0;
    if (!cell) {
        begin_round(group); /* there were commands since */
        return cost;
    }
    list_cursor_advance(&visits->cells);
    if (cell_is_behind(cell, &group->commands))
        cost += (unsigned)cell->pool.n_slots;
    cell_catch_up(cell);
    return cost;
}

/* Returns false if some cells are left. */
static bool visit(struct group *group, unsigned *left)
{
    unsigned cost;

    while (*left > 0) {
        cost = visit_next(group);
        if (cost == 0) {
            end(group);
            return true;
        }
        *left -= cost < *left ? cost : *left;
    }
    return false;
}

static unsigned budget(void)
{
    return fault_inject("visits") < 0 ? 0 : VISITS_PER_TURN;
}

static void on_turn(struct loop_deferred *deferred)
{
    struct group_walks *walks = list_entry(deferred, struct group_walks, turn);

    FAULT_POINT("group.visits");
    walks->left = budget();
    list_until_empty (group, &walks->groups, struct group, visits.link) {
        walks->at = loop_now(group->context->loop);
        if (!visit(group, &walks->left)) {
            loop_defer(group->context->loop, deferred);
            return;
        }
    }
    if (walks->done)
        walks->done(walks);
}

void group_walks_init(struct group_walks *walks)
{
    *walks = (struct group_walks){0};
    list_init(&walks->groups);
    loop_deferred_init(&walks->turn, on_turn);
}

static void begin(struct group *group)
{
    struct group_walks *walks = walks_of(group);
    const usec_t now = loop_now(group->context->loop);

    if (walks->at != now)
        walks->left = budget();
    walks->at = now;
    if (list_linked(&group->visits.link))
        return;
    list_push_back(&walks->groups, &group->visits.link);
    begin_round(group);
    if (!visit(group, &walks->left))
        loop_defer(group->context->loop, &walks->turn);
}

void group_command(struct group *group, const struct cell_command *command)
{
    if (group->commands.n == CELL_COMMANDS_MAX)
        group_commands_finish(group);
    cell_commands_add(&group->commands, command);
    group_keep(group);
    begin(group);
    if (!group_is_keyed(group))
        group_commands_finish(group);
}

void group_commands_finish(struct group *group)
{
    unsigned left = UINT_MAX;

    if (list_linked(&group->visits.link))
        (void)visit(group, &left);
}

void group_commands_end(struct group *group)
{
    if (list_linked(&group->visits.link))
        end(group);
}
