/* SPDX-License-Identifier: MIT */

/* The verb status for all machines. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/nats.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/joined.h"
#include "supervisor/ctl/text/table.h"
#include "supervisor/ctl/verbs/afar.h"
#include <string.h>

/* The sums of a table. */
struct totals {
    uint64_t up, stopped, dead; /* machines */
    uint64_t groups, workers, workers_up, queued, running;
    uint64_t in_trouble; /* groups that are not up, or whose troupe-nats is dead */
};

static bool is_named(const struct invocation *invocation, const char *group)
{
    for (size_t i = 0; i < invocation->n_operands; i++)
        if (strcmp(invocation->operands[i], group) == 0)
            return true;
    return invocation->n_operands == 0;
}

/* Leaves the groups that were asked for, and the machines that have them or whose troupe-nats is
 * for them. */
static void filter(const struct invocation *invocation, json_t *machines)
{
    for (size_t i = json_array_size(machines); i-- > 0;) {
        json_t *machine = json_array_get(machines, i), *groups = json_object_get(machine, "groups");
        json_t *bridges = json_object_get(machine, "bridges"), *bridge;
        const char *name;
        bool wanted = false;

        for (size_t k = json_array_size(groups); k-- > 0;)
            if (!is_named(invocation, field_text(json_array_get(groups, k), "name")))
                (void)json_array_remove(groups, k);
        json_object_foreach(bridges, name, bridge) wanted = wanted || is_named(invocation, name);
        if (!wanted && json_array_size(groups) == 0)
            (void)json_array_remove(machines, i);
    }
}

static bool group_is_up(const json_t *group, const char *bridge)
{
    return (field_is(group, "state", "running") || field_is(group, "state", "paused")) &&
           strcmp(bridge, "dead") != 0;
}

static const char *bridge_of(const json_t *machine, const char *group)
{
    return field_text(json_object_get(machine, "bridges"), group);
}

static void add_up_group(struct totals *totals, const json_t *machine, const json_t *group)
{
    totals->groups++;
    totals->workers += field_count(group, "size");
    totals->workers_up += field_count(group, "up");
    totals->queued += field_count(group, "queued");
    totals->running += field_count(group, "running");
    if (!group_is_up(group, bridge_of(machine, field_text(group, "name"))))
        totals->in_trouble++;
}

static struct totals add_up(const json_t *machines)
{
    struct totals totals = {0};

    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);
        const json_t *groups = json_object_get(machine, "groups");

        if (field_is(machine, "state", "up"))
            totals.up++;
        else if (field_is(machine, "state", "dead"))
            totals.dead++;
        else
            totals.stopped++;
        for (size_t k = 0; k < json_array_size(groups); k++)
            add_up_group(&totals, machine, json_array_get(groups, k));
    }
    return totals;
}

static void show_totals(const struct terminal *terminal, const struct totals *totals)
{
    const uint64_t machines = totals->up + totals->stopped + totals->dead;
    struct joined states = JOINED_NULL;

    joined_add(&states, "%s up", COUNT(totals->up));
    if (totals->stopped > 0)
        joined_add(&states, "%s stopped", COUNT(totals->stopped));
    if (totals->dead > 0)
        joined_add(&states, RED "%s dead" PLAIN, COUNT(totals->dead));
    terminal_print(terminal,
                   "%s machine%s: %s; %s of %s worker%s up, %s job%s queued, %s running\n",
                   COUNT(machines), plural(machines), states.text, COUNT(totals->workers_up),
                   COUNT(totals->workers), plural(totals->workers), COUNT(totals->queued),
                   plural(totals->queued), COUNT(totals->running));
}

static void add_titles(struct table *table)
{
    static const char *const titles[] = {"Machine", "Group",   "State",  "Workers",
                                         "Queued",  "Running", "Oldest", ""};

    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
        table_add(table, BOLD "%s" PLAIN, titles[i]);
}

/* Whether jobs come to the group from NATS. */
static const char *bridge_remark(const char *bridge)
{
    if (strcmp(bridge, "dead") == 0)
        return RED "its troupe-nats is dead" PLAIN;
    if (strcmp(bridge, "stopped") == 0)
        return "its troupe-nats is stopped";
    return *bridge ? "" : DIM "local jobs only" PLAIN;
}

static void add_group(struct table *table, const char *machine, const json_t *group,
                      const char *bridge)
{
    const char *state = field_text(group, "state");
    const uint64_t size = field_count(group, "size"), up = field_count(group, "up");
    const usec_t oldest = field_usec(group, "oldest_usec");

    table_add(table, "%s", SAFE(machine));
    table_add(table, "%s", SAFE(field_text(group, "name")));
    table_add(table, "%s %s", DOT(state), STATE(state));
    table_add(table, "%s%s of %s" PLAIN, up < size ? BOLD : "", COUNT(up), COUNT(size));
    if (field_is(group, "type", "service")) {
        for (int i = 0; i < 4; i++)
            table_add(table, "%s", "");
        return;
    }
    table_add(table, "%s", COUNT(field_count(group, "queued")));
    table_add(table, "%s", COUNT(field_count(group, "running")));
    table_add(table, "%s", oldest > 0 ? SPAN(oldest) : "");
    table_add(table, "%s", bridge_remark(bridge));
}

/* A machine that is not up: all that is known is when it was, and which groups got jobs there. */
static void add_absent(struct table *table, const json_t *machine, usec_t now)
{
    const bool dead = field_is(machine, "state", "dead");
    struct joined groups = JOINED_NULL;
    const char *name;
    json_t *bridge;

    json_object_foreach(json_object_get(machine, "bridges"), name, bridge)
        joined_add(&groups, "%s", SAFE(name));
    table_add(table, "%s", SAFE(field_text(machine, "name")));
    table_add(table, "%s", groups.text);
    table_add(table, "%s %s", DOT(dead ? "failed" : "stopped"),
              dead ? RED "dead" PLAIN : "stopped");
    for (int i = 0; i < 4; i++)
        table_add(table, "%s", "");
    table_add(table, "last seen %s", AGO(now, field_usec(machine, "seen_at")));
}

static void show_table(const struct terminal *terminal, const json_t *machines, usec_t now)
{
    struct table table;

    table_init(&table, 8, "");
    table.right[4] = table.right[5] = table.right[6] = true;
    add_titles(&table);
    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);
        const json_t *groups = json_object_get(machine, "groups");

        if (!field_is(machine, "state", "up"))
            add_absent(&table, machine, now);
        for (size_t k = 0; k < json_array_size(groups); k++) {
            const json_t *group = json_array_get(groups, k);

            add_group(&table, k == 0 ? field_text(machine, "name") : "", group,
                      bridge_of(machine, field_text(group, "name")));
        }
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

static int show(const struct invocation *invocation, const json_t *reply)
{
    const json_t *machines = json_object_get(reply, "machines");
    const struct totals totals = add_up(machines);
    int r = EXIT_OK;

    if (invocation->options.json) {
        r = output_json(invocation, reply);
    } else if (json_array_size(machines) == 0) {
        terminal_print(&invocation->out, "No machine has said anything yet.");
    } else {
        show_totals(&invocation->out, &totals);
        show_table(&invocation->out, machines, clock_realtime());
        if (totals.dead > 0 && !invocation->options.quiet)
            terminal_print(&invocation->out,
                           "\nA dead machine is listed for 7 days, or until 'troupe-nats forget "
                           "MACHINE'.");
    }
    return r == EXIT_OK && (totals.dead > 0 || totals.in_trouble > 0) ? EXIT_FAILED : r;
}

int afar_status(struct invocation *invocation)
{
    struct nats_command command = nats_command_make("cluster");
    json_auto_t *reply = NULL;
    json_t *machines;
    int r = nats_run(invocation, &command, &reply);

    if (r != EXIT_OK)
        return r;
    machines = json_object_get(reply, "machines");
    filter(invocation, machines);
    if (invocation->n_operands > 0 && json_array_size(machines) == 0) {
        complain("no machine has such a group; 'troupectl status --cluster' lists them");
        return EXIT_NOT_FOUND;
    }
    return show(invocation, reply);
}
