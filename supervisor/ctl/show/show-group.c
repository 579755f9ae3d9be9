/* SPDX-License-Identifier: MIT */

/* Shows the status of groups and cells. */

#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* Groups of up to this size are shown with all workers; of larger ones, some that need attention.
 */
#define SMALL_POOL  6
#define NOTABLE_MAX 10
/* How many healthy cells with work are shown without --all. Cells in trouble are always shown. */
#define BUSY_SHOWN 10

/* ---- why a group is in trouble ---- */

/* "100 % of the last 20 jobs dead (since 01:10)"; nothing for a healthy group. */
#define WHY                                                                                        \
    "[[{state=failed}|still runs its previous configuration: ]{fault}"                             \
    "|{state=failing}{dead_percent} % of the last {last_jobs:count} jobs dead "                    \
    "(since {failing_since_at:clock})"                                                             \
    "|accepts no jobs: {store_problem}"                                                            \
    "|{state=failed}{members_are.failed:count} worker{members_are.failed:s} given up"              \
    "|{state=stopped}{stays_stopped}also after a restart of trouped"                               \
    "|{state=degraded}<[, {behind}the new program did not come up"                                 \
    "[{type=actor}, the old one continues]]"                                                       \
    "[, {members_are.failed>0:count} failed]"                                                      \
    "[, {members_are.never_ready:count} do[{members_are.never_ready=1}es] not become ready]"       \
    "[, {members_are.backoff>0:count} to be restarted later]"                                      \
    "[, {members_are.halted>0:count} stopped]>"                                                    \
    "|{state=starting}{members_are.there>0}{members_are.up:count} of {size:count} up"              \
    "[, not ready for {starting_since:age}]"                                                       \
    "|{state=starting}waits for the database, or for the groups of After="                         \
    "|{state=stopping}{members_are.there:count} of {workers:count} worker{workers:s} "             \
    "not ended yet"                                                                                \
    "|{some_cells_fail}{cells_failing:count} of {cells_total:count} cells failing "                \
    "({failing_cell}[{cells_failing>1}, …])"                                                     \
    "|{restoring}reads its jobs from disk; new jobs wait until then"                               \
    "|{drained}drained: nothing runs, and nothing begins until it is resumed"                      \
    "|{state=draining}[{drained=false}takes no new jobs|removed by a reload], {left:count} "       \
    "job{left:s} left]"

static const char LAST_UNSTARTED[] = "      Last: {unstarted.status} ({unstarted.name})";
static const char LAST_DEATH[] =
    "      Last: {last.detail}[: {last.stderr:last}] ({last.worker}, {last.at:ago})\n"
    "            more: troupectl deaths {name}";
static const char LAST_DEAD[] =
    "      Last: [{last_dead.reason:last}|a job is dead] (job {last_dead.job}, "
    "{last_dead.at:ago})\n"
    "            more: troupectl dead-letters --reason job --to {name}";

/* Why an elastic pool has fewer workers than it could use. */
#define HELD                                                                                       \
    "{held:if}held at {size:count} of {size_max:count}: "                                          \
    "[{held=starting}those that it has are not all up yet"                                         \
    "|{held=settling}it grew less than 2 s ago, and waits until its pressure is known"             \
    "|{held=pressure}[{pressure=cpu}CPU|{pressure=io}I/O|memory] pressure {pressure_usec:span}/s " \
    "for {pressure_since_at:age}"                                                                  \
    "|{held=share}its share of PoolMax={pool_max}, of which {sharing:count} cells want workers"    \
    "|{wanted:count} are wanted, but Size= allows no more]"

/* Says how the last worker or job died, if the group is in trouble. Returns whether it did. */
static bool show_last(const struct terminal *terminal, const json_t *view, usec_t now)
{
    const json_t *death = json_object_get(view, "last"), *dead = json_object_get(view, "last_dead");
    const char *pattern = NULL;

    /* The death of a dead job's last attempt says more than the dead job. */
    if (field_has(view, "unstarted"))
        pattern = LAST_UNSTARTED;
    else if (death && (!dead || strcmp(field_text(death, "job"), field_text(dead, "job")) == 0 ||
                       field_usec(death, "at") >= field_usec(dead, "at")))
        pattern = LAST_DEATH;
    else if (dead)
        pattern = LAST_DEAD;
    if (!pattern || !field_true(view, "in_trouble"))
        return false;
    pattern_print(terminal, pattern, view, now);
    return true;
}

static const char TEMPLATE[] =
    "[  Template: {name} starts its workers by exec: its template {template.reason}"
    "|{template.restricted:if}  Template: {name} starts its workers by exec " SHOW_RESTRICTED "]";

/* Workers whose template does not fork them. */
static void show_templates(const struct terminal *terminal, const json_t *group, usec_t now)
{
    const json_t *workers = json_object_get(group, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++)
        pattern_print(terminal, TEMPLATE, json_array_get(workers, i), now);
}

void show_trouble(const struct terminal *terminal, const json_t *group, usec_t now, bool waits)
{
    json_auto_t *view = view_group(group, now);

    pattern_print(terminal,
                  waits ? "[{name} is " HELD "]"
                        : "[{name} is {shown}: <" WHY ">|{name} is " HELD "|nothing: it is up]",
                  view, now);
    (void)show_last(terminal, view, now);
    show_templates(terminal, view, now);
}

bool show_held_cell(const struct terminal *terminal, const json_t *group, const char *name,
                    usec_t now)
{
    const json_t *cell = json_array_get(json_object_get(group, "cells"), 0);
    json_auto_t *view = cell ? json_copy((json_t *)cell) : NULL;

    if (!field_has(view, "held"))
        return false;
    (void)json_object_set_new(view, "name", json_string(name));
    pattern_print(terminal, "{name} is " HELD, view, now);
    return true;
}

/* ---- tables ---- */

static const struct list_column worker_columns[] = {
    {NULL, "{state:dot} {name}", LIST_LEFT},
    {NULL,
     "[{state=backoff}" YELLOW "restarts" PLAIN " in {restart_at:in}|{job:if}{shown:state}"
     "|{shown:state}[ for {since_at:age}]]",
     LIST_LEFT},
    {NULL, "[pid {pid}]", LIST_LEFT},
    {NULL, "[{restarts>0:count} restart{restarts:s}]", LIST_LEFT},
    {NULL,
     "[, {replacement}][, job {job}[ for {job_since_at:age}]][, {status}]"
     "[, {job:if}{published.encoding=utf8}\"{published.data:short}\"]"
     "[, {failure.detail} {failure.at:ago}]",
     LIST_LEFT},
    {NULL, "[{notable}     " DIM "│" PLAIN " {failure.stderr:last}]", LIST_NOTE},
    {0},
};

static void show_workers(const struct terminal *terminal, const json_t *view, usec_t now, bool all)
{
    const json_t *workers = json_object_get(view, "workers");
    const size_t n = json_array_size(workers);
    json_auto_t *shown = json_array();
    size_t n_shown;

    for (size_t i = 0; i < n; i++) {
        json_t *worker = json_array_get(workers, i);

        if (all || n <= SMALL_POOL ||
            (json_array_size(shown) < NOTABLE_MAX && field_true(worker, "notable")))
            (void)json_array_append(shown, worker);
    }
    list_print(terminal, "   ", worker_columns, shown, now);
    n_shown = json_array_size(shown);
    if (n_shown > 0 && n_shown < n)
        terminal_print(terminal, "   " DIM "and %s more" PLAIN, COUNT(n - n_shown));
}

static bool is_in_trouble(const json_t *cell)
{
    return field_is(cell, "state", "degraded") || field_is(cell, "state", "failing") ||
           field_is(cell, "state", "failed");
}

static bool has_work(const json_t *cell)
{
    return field_count(cell, "queued") + field_count(cell, "running") +
               field_count(cell, "waiting") + field_count(cell, "pending") >
           0;
}

/* Chooses cells in trouble, then some with work; all cells, if these are few. */
static json_t *choose_cells(const json_t *cells, bool all)
{
    json_t *chosen = json_array();

    for (int trouble = 1; trouble >= 0; trouble--)
        for (size_t i = 0; i < json_array_size(cells); i++) {
            json_t *cell = json_array_get(cells, i);

            if (is_in_trouble(cell) == trouble &&
                (trouble || all || json_array_size(cells) <= BUSY_SHOWN ||
                 (has_work(cell) && json_array_size(chosen) < BUSY_SHOWN)))
                (void)json_array_append(chosen, cell);
        }
    return chosen;
}

static const struct list_column cell_columns[] = {
    {NULL, "{state:dot} {key}", LIST_LEFT},
    {NULL, "{state:state}", LIST_LEFT},
    {NULL, "{up:count}/{size:count} up[ of {size_min}..{size_max}]", LIST_RIGHT},
    {NULL, "{queued:count} queued", LIST_RIGHT},
    {NULL, "{running:count} running", LIST_RIGHT},
    {NULL, "{succeeded:count} done", LIST_RIGHT},
    {NULL,
     "[, p99 {p99_usec:span}][, oldest waits for {oldest_queued_at:age}]"
     "[, {deaths>0:count} died]",
     LIST_LEFT},
    {0},
};

static void show_cells(const struct terminal *terminal, const json_t *view, usec_t now, bool all)
{
    json_auto_t *shown = choose_cells(json_object_get(view, "cells"), all);
    const uint64_t total = field_count(view, "cells_total"), n_shown = json_array_size(shown);

    pattern_print(terminal, "     Cells: [{cells_total>0:count}|none yet]", view, now);
    list_print(terminal, "   ", cell_columns, shown, now);
    if (total > n_shown)
        terminal_print(terminal, "   " DIM "and %s more" PLAIN, COUNT(total - n_shown));
}

/* A service has no jobs. */
#define JOBS(member) "[{type=service}-|{" member ":count}]"

static const struct list_column group_columns[] = {
    {"GROUP", "{look:dot} {name}", LIST_LEFT},
    {"STATE", "{shown:state}", LIST_LEFT},
    {"UP", "{up:count}/{size:count}[ of {size_min}..{size_max}]", LIST_RIGHT},
    {"RUNNING", JOBS("running"), LIST_RIGHT},
    {"QUEUED", JOBS("queued"), LIST_RIGHT},
    {"DEAD", JOBS("dead"), LIST_RIGHT},
    {"DEATHS", "{deaths:count}", LIST_RIGHT},
    {"",
     "[<" WHY ">[, {unstarted.status}|, {last.detail}|, {last_dead.reason:last}]|{description}]",
     LIST_LEFT},
    {0},
};

void show_groups(const struct terminal *terminal, const json_t *groups, usec_t now)
{
    json_auto_t *views = json_array();

    for (size_t i = 0; i < json_array_size(groups); i++)
        (void)json_array_append_new(views, view_group(json_array_get(groups, i), now));
    list_print(terminal, "", group_columns, views, now);
}

/* ---- one group ---- */

static const char TITLE[] =
    "{look:dot} " BOLD "{name}" PLAIN "[ - {description}]: {shown:state}[{type=service} (service)]"
    "[ – " WHY "]\n"
    "   Workers: [{size_max:if}{size:count} of {size_min}..{size_max}[, {wanted} wanted], ]"
    "[{short_of_workers}" BOLD "]{members_are.up:count} of {size:count} up" PLAIN
    "[: [, {tally.busy:count} busy][, {tally.idle:count} [{type=service}up|idle]]"
    "[, {tally.spare:count} standing by][, " YELLOW "{tally.starting:count} starting" PLAIN "]"
    "[, {tally.stopping:count} stopping][, " RED "{tally.killing:count} being killed" PLAIN "]"
    "[, " YELLOW "{tally.backoff:count} in backoff" PLAIN "]"
    "[, " RED "{tally.failed:count} failed" PLAIN "][, {tally.stopped:count} stopped]]";

static const char JOB_LINES[] =
    "     Queue: [{queued>0:count} job{queued:s} ({queue_bytes:bytes})"
    "[, the oldest waits for [{waits_long}" YELLOW "]{oldest_queued_at:age}" PLAIN "]|empty]"
    "[; " YELLOW "{refused>0:count} refused" PLAIN " so far]"
    "[; " YELLOW "{senders>0:count} sender{senders:s}" PLAIN " wait[{senders=1}s] for room]\n"
    "      Jobs: [[[, {running>0:count} running]"
    "[, " YELLOW "{waiting>0:count} delayed or between attempts" PLAIN "]"
    "[, {pending>0:count} wait for other jobs]]"
    "[; [, " RED "{dead>0:count} dead" PLAIN "][, {succeeded>0:count} succeeded]"
    "[, {rejected>0:count} rejected][, {cancelled>0:count} cancelled]]"
    "[; [, {retries>0:count} retried][, {results>0:count} kept]]|none yet]"
    "[ ({results_bytes>0:bytes})]\n"
    "[      Took: at most {p50_usec:span} for half of the last jobs, {p99_usec:span} for 99 %"
    "[; at work: {p50_work_usec:span}, {p99_work_usec:span}]]";

static const char DEATHS[] =
    "[    Deaths: {deaths:count}, the last {last.at:ago}: {last.worker} {last.detail}"
    "|    Deaths: {deaths>0:count}]";

/* A running group may still run its old program after a reload. Limits without effect are shown
 * because users rely on limits. */
static const char CONFIGURATION[] =
    "[{members_are.failed>0}            when that is fixed: troupectl reset {name}]\n"
    "[{behind}    Reload: " YELLOW "the new program did not come up" PLAIN
    "[{members_are.up>0}, workers continue with the old one]; see 'troupectl deaths {name}', fix "
    "it and reload again]\n"
    "[    Limits: " YELLOW "{no_effect}" PLAIN " without effect here, see 'troupectl info']\n"
    "[   History: " RED "off" PLAIN ": {history_problem}]\n"
    "[   Sandbox: {sandbox}]";

static const char LIMIT[] =
    "     Limit: [{kind=limit}{name}|its own][, [{taken:count} of ]{running:count} units"
    "[{running_per=key} per key]][, {rate:count} in {period_usec:span}"
    "[{rate_per=key} per key]][, {ready:count} of {burst:count} ready]"
    "[; {waiting>0:count} job{waiting:s} wait[{waiting=1}s]]";

/* Most workers of a group were started in the same way, so only changes are printed. */
static void show_in_force(const struct terminal *terminal, const json_t *view, usec_t now)
{
    const json_t *workers = json_object_get(view, "workers");
    const char *last = "";

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (!field_is(worker, "in_force", last))
            pattern_print(terminal, "[  In force: {in_force}]", worker, now);
        last = field_text(worker, "in_force");
    }
}

static void show_limits(const struct terminal *terminal, const json_t *view, usec_t now)
{
    const json_t *limits = json_object_get(view, "limits");

    for (size_t i = 0; i < json_array_size(limits); i++)
        pattern_print(terminal, LIMIT, json_array_get(limits, i), now);
}

static void show_view(const struct terminal *terminal, json_t *view, usec_t now, bool all)
{
    pattern_print(terminal, TITLE, view, now);
    if (!field_is(view, "type", "service"))
        pattern_print(terminal, JOB_LINES, view, now);
    if (show_last(terminal, view, now))
        (void)json_object_del(view, "last");
    pattern_print(terminal, DEATHS, view, now);
    pattern_print(terminal, CONFIGURATION, view, now);
    show_limits(terminal, view, now);
    show_in_force(terminal, view, now);
    show_templates(terminal, view, now);
    if (field_has(view, "cells"))
        show_cells(terminal, view, now, all);
    else
        show_workers(terminal, view, now, all);
}

void show_group(const struct terminal *terminal, const json_t *group, usec_t now, bool all)
{
    json_auto_t *view = view_group(group, now);

    show_view(terminal, view, now, all);
}

void show_cell(const struct terminal *terminal, const json_t *group, const json_t *cell, usec_t now,
               bool all)
{
    json_auto_t *view = view_cell(group, cell, now);

    show_view(terminal, view, now, all);
}
