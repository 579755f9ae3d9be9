/* SPDX-License-Identifier: MIT */

/* The verb status. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static bool group_is_up(const json_t *group)
{
    return (field_is(group, "state", "running") || field_is(group, "state", "paused")) &&
           !show_has_failing_cells(group);
}

/* States in trouble, in the order of the summary. */
static const char *const troubles[] = {"cannot start", "failed",   "failing",
                                       "behind",       "degraded", "with failing cells",
                                       "starting",     "stopping", "draining"};

static size_t rank(const json_t *group)
{
    const char *state = show_group_state(group);

    if (strcmp(state, "degraded") == 0 && field_true(group, "behind"))
        state = "behind";
    if (show_has_failing_cells(group))
        state = "with failing cells";
    for (size_t i = 0; i < ELEMENTS(troubles); i++)
        if (strcmp(state, troubles[i]) == 0)
            return i;
    return ELEMENTS(troubles);
}

/* EXIT_OK if all groups are well. In safe mode, or without a configuration, none of them works. */
static int status_of_groups(const json_t *info, const json_t *groups)
{
    if (field_true(info, "safe_mode") || field_has(info, "config_problem"))
        return EXIT_FAILED;
    for (size_t i = 0; i < json_array_size(groups); i++)
        if (!group_is_up(json_array_get(groups, i)))
            return EXIT_FAILED;
    return EXIT_OK;
}

static void show_supervisor(const struct invocation *invocation, const json_t *info, usec_t now)
{
    uint64_t groups = field_count(info, "groups"), workers = field_count(info, "workers"),
             clients = field_count(info, "clients"), jobs = field_count(info, "jobs");
    const char *state = field_text(info, "state");

    terminal_print(&invocation->out,
                   "%s " BOLD "trouped" PLAIN
                   " %s: %s%s, up %s, pid %lld, %s group%s, %s worker%s, %s job%s, %s client%s",
                   DOT(state), SAFE(field_text(info, "version")), STATE(state),
                   field_is(info, "loop", "epoll") ? ", waits with epoll" : "",
                   SPAN(usec_sub(now, field_usec(info, "started_at"))),
                   (long long)field_int(info, "pid"), COUNT(groups), plural(groups), COUNT(workers),
                   plural(workers), COUNT(jobs), plural(jobs), COUNT(clients), plural(clients));
    if (field_true(info, "safe_mode"))
        terminal_print(&invocation->out,
                       "  Trouble: " RED "safe mode" PLAIN
                       ", the supervisor has crashed %s times: all groups are paused until "
                       "troupectl reload",
                       COUNT(field_count(info, "restarts")));
    if (field_has(info, "config_problem"))
        terminal_print(&invocation->out,
                       "  Trouble: " RED "the configuration has a problem" PLAIN
                       "; no group is supervised until it is solved: %s",
                       SAFE(field_text(info, "config_problem")));
}

/* Summarises the states in trouble in one line. */
static void show_troubles(const struct terminal *terminal, const json_t *groups)
{
    size_t counts[ELEMENTS(troubles) + 1] = {0};
    struct joined text = JOINED_NULL;

    for (size_t i = 0; i < json_array_size(groups); i++)
        counts[rank(json_array_get(groups, i))]++;
    for (size_t i = 0; i < ELEMENTS(troubles); i++)
        if (counts[i] > 0)
            joined_add(&text, "%zu %s", counts[i], troubles[i]);
    if (*text.text)
        terminal_print(terminal, "  Trouble: " RED "%s" PLAIN, text.text);
}

/* Returns the groups sorted: those in trouble first. */
static json_t *rank_groups(const json_t *groups)
{
    json_t *ranked = json_array();

    for (size_t wanted = 0; wanted <= ELEMENTS(troubles); wanted++)
        for (size_t i = 0; i < json_array_size(groups); i++)
            if (rank(json_array_get(groups, i)) == wanted)
                json_array_append(ranked, json_array_get(groups, i));
    return ranked;
}

static void show_all_groups(const struct invocation *invocation, const json_t *groups)
{
    json_auto_t *ranked = rank_groups(groups);
    const usec_t now = clock_realtime();

    if (!invocation->options.all) {
        putchar('\n');
        show_groups(&invocation->out, ranked, now);
        return;
    }
    for (size_t i = 0; i < json_array_size(ranked); i++) {
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
    show_supervisor(invocation, info, clock_realtime());
    show_troubles(&invocation->out, groups);
    if (json_array_size(groups) > 0)
        show_all_groups(invocation, groups);
    else if (!field_has(info, "config_problem"))
        terminal_print(&invocation->out, "\nNo groups are configured (/etc/troupe/NAME.group).");
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
            up = pool_is_up(worker);
    }
    return up;
}

/* Shows the cell or worker `target` of the group. */
static bool show_part(const struct invocation *invocation, const json_t *group, const char *target)
{
    const json_t *cell = cells_find(group, target);
    json_auto_t *whole = cells_merge(group);

    if (!cell)
        return whole && show_one_worker(invocation, whole, target);
    if (!invocation->options.json)
        show_cell(&invocation->out, group, cell, clock_realtime(), invocation->options.all);
    return group_is_up(cell);
}

static int show_targets(const struct invocation *invocation, const json_t *groups,
                        const char *target)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);
        bool up = group_is_up(group);

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
