/* SPDX-License-Identifier: MIT */

/* The verb status. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

/* States in trouble, in the order of the summary. */
static const char *const troubles[] = {"cannot start", "failed",   "failing",
                                       "behind",       "degraded", "with failing cells",
                                       "starting",     "stopping", "draining"};
static const char SUMMARY[] =
    "[  Trouble: " RED "<[, {cannot start} cannot start][, {failed} failed][, {failing} failing]"
    "[, {behind} behind][, {degraded} degraded][, {with failing cells} with failing cells]"
    "[, {starting} starting][, {stopping} stopping][, {draining} draining]>" PLAIN "]";

static const char *trouble_of(const json_t *view)
{
    if (field_true(view, "some_cells_fail"))
        return "with failing cells";
    return field_is(view, "state", "degraded") && field_true(view, "behind")
               ? "behind"
               : field_text(view, "shown");
}

static size_t rank(const json_t *view)
{
    size_t i = 0;

    while (i < ELEMENTS(troubles) && strcmp(trouble_of(view), troubles[i]) != 0)
        i++;
    return i;
}

/* EXIT_OK if all groups are well. In safe mode, or without a configuration, none of them works. */
static int status_of_groups(const json_t *info, const json_t *groups)
{
    if (field_true(info, "safe_mode") || field_has(info, "config_problem") ||
        field_has(info, "kept_back"))
        return EXIT_FAILED;
    for (size_t i = 0; i < json_array_size(groups); i++)
        if (!view_is_well(json_array_get(groups, i)))
            return EXIT_FAILED;
    return EXIT_OK;
}

static const char SUPERVISOR[] =
    "{state:dot} " BOLD "trouped" PLAIN
    " {version}: {state:state}[{loop=epoll}, waits with epoll], "
    "up {started_at:age}, pid {pid}, {groups:count} group{groups:s}, "
    "{workers:count} worker{workers:s}, {jobs:count} job{jobs:s}, {clients:count} "
    "client{clients:s}\n"
    "[{safe_mode}  Trouble: " RED "safe mode" PLAIN
    ", the supervisor has crashed {restarts:count} times: all groups are paused until "
    "troupectl reload]\n"
    "[  Trouble: " RED "the configuration has a problem" PLAIN
    "; no group is supervised until it is solved: {config_problem}]";

/* Returns the groups, those in trouble first, and counts them by trouble. */
static json_t *rank_groups(const json_t *groups, json_t *counts, usec_t now)
{
    json_auto_t *views = json_array();
    json_t *ranked = json_array();

    for (size_t i = 0; i < json_array_size(groups); i++)
        (void)json_array_append_new(views, view_group(json_array_get(groups, i), now));
    for (size_t wanted = 0; wanted <= ELEMENTS(troubles); wanted++)
        for (size_t i = 0; i < json_array_size(views); i++) {
            const json_t *view = json_array_get(views, i);
            const char *trouble = trouble_of(view);

            if (rank(view) != wanted)
                continue;
            json_array_append(ranked, json_array_get(groups, i));
            json_object_set_new(counts, trouble, json_integer(field_int(counts, trouble) + 1));
        }
    return ranked;
}

static void show_all_groups(const struct invocation *invocation, const json_t *info,
                            const json_t *groups)
{
    const usec_t now = clock_realtime();
    json_auto_t *counts = json_object(), *ranked = rank_groups(groups, counts, now);

    pattern_print(&invocation->out, SUPERVISOR, info, now);
    pattern_print(&invocation->out, SUMMARY, counts, now);
    show_kept_back(&invocation->out, "  Trouble: ", info, "");
    if (json_array_size(ranked) == 0 && !field_has(info, "config_problem"))
        terminal_print(&invocation->out, "\nNo groups are configured (/etc/troupe/NAME.group). "
                                         "'troupectl init command NAME' writes one.");
    if (json_array_size(ranked) > 0 && !invocation->options.all) {
        putchar('\n');
        show_groups(&invocation->out, ranked, now);
    }
    for (size_t i = 0; invocation->options.all && i < json_array_size(ranked); i++) {
        putchar('\n');
        show_group(&invocation->out, json_array_get(ranked, i), now, true);
    }
}

static int status_of_all(struct invocation *invocation)
{
    json_auto_t *info = NULL, *status = NULL;
    const json_t *groups;
    int r = parts_of_status(invocation, NULL, false, &status);

    if (r == EXIT_OK)
        r = call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);
    if (r != EXIT_OK)
        return r;
    groups = json_object_get(status, "groups");
    if (invocation->options.json) {
        r = output_json(invocation, status);
        return r == EXIT_OK ? status_of_groups(info, groups) : r;
    }
    show_all_groups(invocation, info, groups);
    return status_of_groups(info, groups);
}

/* A worker and its replacement may both exist. */
static bool show_one_worker(const struct invocation *invocation, const json_t *group,
                            const char *target)
{
    const json_t *workers = json_object_get(group, "workers");
    bool up = false;

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (!field_is(worker, "name", target))
            continue;
        if (!invocation->options.json)
            show_worker(&invocation->out, group, worker, clock_realtime());
        if (!field_has(worker, "replacement"))
            up = view_is_up(worker);
    }
    return up;
}

/* Shows the cell or worker `target` of the group. */
static bool show_part(const struct invocation *invocation, const json_t *group, const char *target)
{
    const json_t *cell = view_find_cell(group, target);
    json_auto_t *view = view_group(group, clock_realtime());

    if (!cell)
        return show_one_worker(invocation, view, target);
    if (!invocation->options.json)
        show_cell(&invocation->out, group, cell, clock_realtime(), invocation->options.all);
    return view_is_well(cell);
}

static int show_targets(const struct invocation *invocation, const json_t *groups,
                        const char *target)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        bool up = view_is_well(group);

        if (strchr(target, '/'))
            up = show_part(invocation, group, target);
        else if (!invocation->options.json)
            show_group(&invocation->out, group, clock_realtime(), invocation->options.all);
        if (!up)
            status = EXIT_FAILED;
    }
    return status;
}

static int status_of_targets(struct invocation *invocation, json_t *all_groups)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < invocation->n_operands; i++) {
        const char *target = invocation->operands[i];
        json_auto_t *reply = NULL;
        int r = parts_of_status(invocation, target, false, &reply);

        if (r == EXIT_UNREACHABLE)
            return r;
        if (r == EXIT_OK) {
            if (i > 0 && !invocation->options.json)
                putchar('\n');
            r = show_targets(invocation, json_object_get(reply, "groups"), target);
            if (json_array_extend(all_groups, json_object_get(reply, "groups")) < 0)
                return call_no_memory();
        }
        /* A target that does not exist is worse than one that is down. */
        status = r > status ? r : status;
    }
    return status;
}

int verb_status(struct invocation *invocation)
{
    json_auto_t *document = NULL;
    json_t *groups;
    int r;

    if (invocation->n_operands == 0)
        return status_of_all(invocation);
    groups = json_array();
    document = json_pack("{s:o}", "groups", groups);
    if (!document)
        return call_no_memory();
    r = status_of_targets(invocation, groups);
    if (invocation->options.json && r <= EXIT_FAILED && output_json(invocation, document) != 0)
        return EXIT_FAILED;
    return r;
}
