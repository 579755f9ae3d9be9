/* SPDX-License-Identifier: MIT */
#include "worker/nats/cluster-table.h"

#include "shared/base/clock.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

/* The sums of a table, and the widths of its first columns. */
struct summary {
    int64_t up, stopped, dead; /* machines */
    int64_t workers, workers_up, queued, running;
    bool trouble; /* a machine is dead, or a group is not up, or its troupe-nats is dead */
    int machine_width, group_width;
};

/* Other machines have written this: it must not reach a terminal. */
static const char *name_of(const char *text)
{
    return text && text[strspn(text, NAME_CHARACTERS)] == '\0' ? text : "?";
}

static const char *text_of(const json_t *object, const char *member)
{
    return name_of(json_string_value(json_object_get(object, member)));
}

static int64_t number_of(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static bool is(const json_t *object, const char *member, const char *value)
{
    return strcmp(text_of(object, member), value) == 0;
}

static void widen(int *width, const char *text)
{
    const int length = (int)strlen(text);

    *width = length > *width ? length : *width;
}

/* ---- sums ---- */

static void sum_group(struct summary *sums, const json_t *bridges, const json_t *group)
{
    const char *name = text_of(group, "name");

    widen(&sums->group_width, name);
    sums->workers += number_of(group, "size");
    sums->workers_up += number_of(group, "up");
    sums->queued += number_of(group, "queued");
    sums->running += number_of(group, "running");
    sums->trouble |= (!is(group, "state", "running") && !is(group, "state", "paused")) ||
                     is(bridges, name, "dead");
}

static struct summary sum_up(const json_t *machines)
{
    struct summary sums = {.machine_width = sizeof("Machine") - 1,
                           .group_width = sizeof("Group") - 1};

    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);
        const json_t *groups = json_object_get(machine, "groups");
        json_t *bridges = json_object_get(machine, "bridges"), *bridge;
        const char *name;

        widen(&sums.machine_width, text_of(machine, "name"));
        sums.up += is(machine, "state", "up");
        sums.dead += is(machine, "state", "dead");
        sums.stopped += is(machine, "state", "stopped");
        json_object_foreach(bridges, name, bridge) widen(&sums.group_width, name_of(name));
        for (size_t k = 0; k < json_array_size(groups); k++)
            sum_group(&sums, bridges, json_array_get(groups, k));
    }
    sums.trouble |= sums.dead > 0;
    return sums;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_sums(const struct summary *sums)
{
    const int64_t machines = sums->up + sums->stopped + sums->dead;

    printf("%" PRId64 " machine%s: %" PRId64 " up", machines, plural(machines), sums->up);
    if (sums->stopped > 0)
        printf(", %" PRId64 " stopped", sums->stopped);
    if (sums->dead > 0)
        printf(", %" PRId64 " dead", sums->dead);
    printf("; %" PRId64 " of %" PRId64 " worker%s up, %" PRId64 " job%s queued, %" PRId64
           " running\n\n",
           sums->workers_up, sums->workers, plural(sums->workers), sums->queued,
           plural(sums->queued), sums->running);
}

/* ---- rows ---- */

/* "12s", "3min", "5h". */
static const char *span(char text[static 32], usec_t time)
{
    const uint64_t seconds = time / USEC_PER_SEC;
    const uint64_t unit = seconds < 120 ? 1 : seconds < 7200 ? 60 : 3600;

    (void)snprintf(text, 32, "%" PRIu64 "%s", seconds / unit,
                   unit == 1    ? "s"
                   : unit == 60 ? "min"
                                : "h");
    return text;
}

/* Says whether jobs come to the group from NATS. */
static const char *remark(const json_t *bridges, const char *group)
{
    if (!json_object_get(bridges, group))
        return "local jobs only";
    return is(bridges, group, "dead")      ? "its troupe-nats is dead"
           : is(bridges, group, "stopped") ? "its troupe-nats is stopped"
                                           : "";
}

static void print_group(const struct summary *sums, const char *machine, const json_t *bridges,
                        const json_t *group)
{
    const int64_t oldest = number_of(group, "oldest_usec");
    char workers[48], age[32] = "";

    (void)snprintf(workers, sizeof(workers), "%" PRId64 " of %" PRId64, number_of(group, "up"),
                   number_of(group, "size"));
    printf("%-*s  %-*s  %-12s %12s", sums->machine_width, machine, sums->group_width,
           text_of(group, "name"), text_of(group, "state"), workers);
    if (is(group, "type", "service")) {
        puts("");
        return;
    }
    if (oldest > 0)
        (void)span(age, (usec_t)oldest);
    printf("  %7" PRId64 "  %7" PRId64 "  %6s  %s\n", number_of(group, "queued"),
           number_of(group, "running"), age, remark(bridges, text_of(group, "name")));
}

/* Of a machine that is not up, only this is known: when it was, and which groups got jobs there. */
static void print_absent(const struct summary *sums, const json_t *machine)
{
    const usec_t now = clock_realtime(), seen = (usec_t)number_of(machine, "seen_at");
    json_t *bridge;
    const char *group;
    char age[32];

    json_object_foreach(json_object_get(machine, "bridges"), group, bridge)
        printf("%-*s  %-*s  %-12s  last seen %s ago\n", sums->machine_width,
               text_of(machine, "name"), sums->group_width, name_of(group),
               text_of(machine, "state"), span(age, now > seen ? now - seen : 0));
}

bool cluster_print(const json_t *machines, const struct output *output)
{
    const struct summary sums = sum_up(machines);

    if (output->json)
        return !sums.trouble;
    if (json_array_size(machines) == 0) {
        puts("No machine has said anything yet.");
        return true;
    }
    print_sums(&sums);
    printf("%-*s  %-*s  %-12s %12s  %7s  %7s  %6s\n", sums.machine_width, "Machine",
           sums.group_width, "Group", "State", "Workers", "Queued", "Running", "Oldest");
    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);
        const json_t *groups = json_object_get(machine, "groups");

        if (!is(machine, "state", "up"))
            print_absent(&sums, machine);
        for (size_t k = 0; k < json_array_size(groups); k++)
            print_group(&sums, k == 0 ? text_of(machine, "name") : "",
                        json_object_get(machine, "bridges"), json_array_get(groups, k));
    }
    if (sums.dead > 0 && !output->quiet)
        puts("\nA dead machine is listed for 7 days, or until 'troupe-nats forget MACHINE'.");
    return !sums.trouble;
}
