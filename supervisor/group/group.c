/* SPDX-License-Identifier: MIT */
#include "supervisor/event/event.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/limit-table.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor.h"

#include "shared/base/log.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/process.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Cells and slots that are freed in one turn. */
#define FREED_PER_TURN 256

static const char REMOVED[] = "the group was removed by a reload";

void group_tell(struct group *group, enum log_level level, const char *type, const char *format,
                ...)
{
    const struct event event = {.level = level, .type = type, .group = group->name};
    va_list arguments;

    va_start(arguments, format);
    event_tell(group->context->events, event, group->name, format, arguments);
    va_end(arguments);
}

static int group_make_only_cell(struct group *group)
{
    int r;

    if (group->config->cells == CONFIG_CELLS_BY_KEY)
        return group_new_actor(group);
    r = cell_new(&group->cell, group, "");
    if (r < 0)
        return r;
    cell_table_add(&group->cells, group->cell);
    return 0;
}

static int group_open_limits(struct group *group)
{
    struct limit_table *table = group->context->limits;
    int r = limit_table_reserve(table, group->config);

    limits_init(&group->limits, group->name, table, &group->counts);
    limits_note_ending(&group->limits,
                       (int)held_n_ending(&group->context->pools->process->held, group->name));
    if (r < 0)
        return r;
    limits_change(&group->limits, group->config);
    if (!group->resumes) {
        group->limits.known = table->awaited ? LIMITS_AWAITED : LIMITS_KNOWN;
        return 0;
    }
    limits_take_over(&group->limits);
    group->limits.known =
        !table->settings.read && group_kept_limits(group) ? LIMITS_SET : LIMITS_KNOWN;
    return 0;
}

int group_new(struct group **ret, const struct group_context *context, struct config_group *config)
{
    struct group *group = calloc(1, sizeof(*group));
    int r;

    if (!group)
        return -ENOMEM;
    group->name = strdup(config->name);
    if (!group->name) {
        free(group);
        return -ENOMEM;
    }
    group->context = context;
    group->cell_handler = &GROUP_CELL_HANDLER;
    group->config = config;
    group->size = config->size.low;
    group->pools.context = context->pools;
    group->pools.name = group->name;
    output_log_init(&group->pools.output);
    group->pools.census.parent = &context->registry->census;
    list_init(&group->pending_link);
    list_init(&group->removed_link);
    list_init(&group->down_link);
    list_init(&group->closing.link);
    list_init(&group->visits.link);
    list_init(&group->visits.cells.link);
    group_count_init(group);
    kept_results_init(&group->results, context->loop, context->jobs);
    job_streams_init(&group->streams);
    kept_results_set_bounds(&group->results, config->result_ttl, config->results_max,
                            config->results_memory_max);
    submitters_init(&group->submitters, NULL);
    cell_table_init(&group->cells);
    group_open_kept(group);
    r = group_open_limits(group);
    group_keep_config(group);
    group->pools.blobs = blob_share_new(&context->jobs->blobs);
    if (!group->pools.blobs)
        r = -ENOMEM;
    if (r == 0 && group_is_keyed(group))
        r = budget_init(&group->budget, cell_decide_again);
    if (r == 0)
        r = group_make_only_cell(group);
    if (r == 0 && group_is_keyed(group))
        budget_set_total(&group->budget, config->pool_max);
    if (r == 0)
        group_watch_pressure(group);
    if (r < 0) {
        group->config = NULL; /* still the caller's */
        group_free(group);
        return r;
    }
    *ret = group;
    return 0;
}

/* Returns how many slots it had. */
static size_t free_cell(struct cell *cell)
{
    const size_t n = cell->pool.n_slots;

    cell_table_remove(&cell->group->cells, cell);
    cell_free(cell);
    return n;
}

bool group_clear(struct group *group)
{
    const struct list *cells = &group->cells.cells;

    for (size_t n = 0; group_is_keyed(group) && !list_empty(cells) && n < FREED_PER_TURN; n++)
        n += free_cell(list_first_entry(cells, struct cell, link));
    return (list_empty(cells) || !group_is_keyed(group)) && kept_results_clear(&group->results);
}

struct group *group_free(struct group *group)
{
    if (!group)
        return NULL;
    group_closing_end(group);
    group_count_end(group);
    list_until_empty (cell, &group->cells.cells, struct cell, link)
        (void)free_cell(cell);
    group_commands_end(group); /* cells have configurations of commands */
    group_unwatch_pressure(group);
    budget_deinit(&group->budget);
    limits_deinit(&group->limits);
    submitters_deinit(&group->submitters);
    job_id_log_end(&group->cut_off, group->name);
    list_unlink(&group->down_link); /* freed slots may have put it there */
    if (group->actor)
        actor_end(group->actor, "the group is gone");
    output_log_deinit(&group->pools.output);
    kept_results_deinit(&group->results);
    job_streams_deinit(&group->streams);
    cell_table_deinit(&group->cells);
    group_fault_end(group);
    kept_state_free(&group->context->pools->process->kept, group->kept);
    group_forget_config(group);
    (void)blob_share_unref(group->pools.blobs);
    config_group_free(group->config);
    free(group->name);
    free(group);
    return NULL;
}

void group_start(struct group *group)
{
    group->wanted = true;
    group_set_pending(group, false);
    group_command(group, &(struct cell_command){.type = CELL_START});
}

void group_stop(struct group *group, bool hurry)
{
    group->wanted = false;
    group_set_pending(group, false);
    group_command(group, &(struct cell_command){.type = CELL_STOP, .hurry = hurry});
    group_review_drain(group);
}

void group_stop_within(struct group *group, usec_t time)
{
    group_command(group, &(struct cell_command){.type = CELL_STOP_WITHIN, .within = time});
}

void group_restart(struct group *group)
{
    group->wanted = true;
    group_command(group, &(struct cell_command){.type = CELL_RESTART});
}

void group_reset(struct group *group)
{
    group->history.outcomes = (struct outcomes){0};
    group_command(group, &(struct cell_command){.type = CELL_RESET});
}

static const char *const PAUSED[] = {
    "is resumed",
    "is paused: jobs are queued, none is handed out",
};

/* Pauses or resumes the group. `others`: includes cells that were paused individually. */
static void set_pause(struct group *group, enum cell_pause pause, bool others)
{
    const size_t n_before = group->cells.n_paused;
    const bool changes = (group->pause != CELL_RUNS) != (pause != CELL_RUNS) ||
                         (others && n_before != (pause != CELL_RUNS ? group->cells.n_cells : 0));

    group->pause = pause;
    group_command(group,
                  &(struct cell_command){.type = CELL_PAUSE, .pause = pause, .others = others});
    group_review_drain(group);
    if (changes)
        group_tell(group, LOG_LEVEL_NOTICE, pause == CELL_RUNS ? "group.resumed" : "group.paused",
                   "%s", PAUSED[pause != CELL_RUNS]);
}

void group_set_paused(struct group *group, bool paused)
{
    set_pause(group, paused ? CELL_PAUSED : CELL_RUNS, true);
}

void group_hold_back(struct group *group, bool held_back)
{
    if (group->pause == (held_back ? CELL_RUNS : CELL_HELD_BACK))
        set_pause(group, held_back ? CELL_HELD_BACK : CELL_RUNS, false);
}

int group_set_cell_paused(struct cell *cell, bool paused)
{
    const enum cell_pause pause = paused ? CELL_PAUSED : CELL_RUNS;
    int r;

    if (cell == cell->group->cell)
        group_set_paused(cell->group, paused);
    if (cell->pause == pause)
        return 0;
    if (cell_is_retiring(cell)) {
        r = cell_call_back(cell);
        if (r < 0)
            return r;
    }
    cell_set_pause(cell, pause);
    pool_tell(
        &cell->pool,
        (struct event){.level = LOG_LEVEL_NOTICE, .type = paused ? "cell.paused" : "cell.resumed"},
        "%s", PAUSED[paused]);
    group_review_drain(cell->group);
    return 0;
}

void group_close(struct group *group, const char *why)
{
    group->closed = why;
    group_closing_begin(group, why);
    group->closing.logs = true;
}

void group_reopen(struct group *group)
{
    group->closed = NULL;
    group_command(group, &(struct cell_command){.type = CELL_OPEN});
}

static void group_adopt(struct group *group, struct config_group *config)
{
    group->config = config;
    group_note_user(group);
    if (group->actor)
        group->actor->config = config;
    group_keep_config(group);
    kept_results_set_bounds(&group->results, config->result_ttl, config->results_max,
                            config->results_memory_max);
    group_change_limits(group, config);
    if (group_is_keyed(group))
        budget_set_total(&group->budget, config->pool_max);
    group_watch_pressure(group);
}

int group_reconfigure(struct group *group, struct config_group *config)
{
    struct config_group *before = group->config;
    const struct cell_command command = {
        .type = CELL_RECONFIGURE,
        .config = config,
        .before = before,
        .rolls = !config_group_same_process(before, config) || group_is_behind(group),
        .resizes = config_size_number(config->size) != config_size_number(before->size),
        .range = config->size,
    };
    int r = limit_table_reserve(group->context->limits, config);

    if (r == 0 && command.resizes)
        r = group_reserve(group, config->size);
    if (r < 0)
        return r;
    group_adopt(group, config);
    if (command.resizes)
        group_choose_size(group, config->size);
    group_command(group, &command);
    return 0;
}

bool group_is_behind(const struct group *group)
{
    return group->pools.n_behind > 0;
}

void group_remove(struct group *group)
{
    bool blocked = group_is_blocked(group);

    group_fault_end(group);
    group->removal = GROUP_REMOVED;
    list_push_back(&group->context->registry->removed, &group->removed_link);
    group_tell(group, LOG_LEVEL_NOTICE, "group.removed", "is removed: it drains");
    if (!group->wanted || blocked)
        group->closed = REMOVED;
    group_closing_begin(group, REMOVED); /* of other groups, it closes stopped cells */
    group_review_removal(group);
}

void group_review_removal(struct group *group)
{
    if (group->removal != GROUP_STAYS && group->counts.n[JOBS_LIVE] == 0 && !group_is_unread(group))
        group_drained(group);
}

void group_restore(struct group *group)
{
    group->removal = GROUP_STAYS;
    group->n_returns++;
    if (group->rows != GROUP_UNREAD && group->context->durable->store)
        group->back_from = store_next_number(group->context->durable->store);
    list_unlink(&group->removed_link);
    group_reopen(group);
    group_enlist(group);
}

void group_drained(struct group *group)
{
    /* Each of its cells may report this several times until its slots have stopped. */
    if (group->removal == GROUP_OVER && !group->wanted &&
        (group_is_visited(group) || group->pools.census.n[CENSUS_WANTED] == 0))
        return;
    /* Those of a group that no file describes stay on disk when the supervisor stops. */
    if (group->removal != GROUP_OVER && !(group_is_undescribed(group) && group->closed))
        group_tell(group, LOG_LEVEL_NOTICE, "group.drained", "has no more jobs");
    group->removal = GROUP_OVER;
    group_stop(group, false);
}
