/* SPDX-License-Identifier: MIT */
/* Pressure on memory, CPU or I/O keeps the elastic pools of a group from growing, and makes them
 * smaller if it lasts. */

#include "shared/base/log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/process/process.h"
#include <inttypes.h>
#include <string.h>

/* The kernel reports pressure that lasts once in each window. */
#define PRESSED_FOR (5 * PRESSURE_WINDOW / 2)
/* Cells that become smaller at once; others do with their next job. */
#define WAKES_MAX 1000u

static const char *name_of(enum pressure_kind kind)
{
    static const char *const names[] = {
        [PRESSURE_MEMORY] = "memory", [PRESSURE_CPU] = "CPU", [PRESSURE_IO] = "I/O"};

    return names[kind];
}

static void wake_cells(const struct group *group)
{
    unsigned n = 0;

    group_each_cell (cell, group) {
        if (n++ == WAKES_MAX)
            return;
        cell_wake(cell);
    }
}

static void on_pressure(struct pressure_watch *watch)
{
    struct group *group = list_entry(watch - watch->kind, struct group, pressure.watches[0]);
    struct group_pressure *pressure = &group->pressure;
    const usec_t now = loop_now(group->context->loop);
    const bool lasts = now < pressure->until;

    pressure->kind = watch->kind;
    pressure->rate = pressure_read(watch);
    pressure->until = usec_add(now, PRESSED_FOR);
    if (lasts) {
        pressure->n_reliefs++;
        wake_cells(group);
        return;
    }
    pressure->since = now;
    group_tell(group, LOG_LEVEL_NOTICE, "group.pressed",
               "does not grow: %s pressure %" PRIu64 " ms/s", name_of(watch->kind),
               pressure->rate / USEC_PER_MSEC);
}

static void watch_one(struct group *group, enum pressure_kind kind, usec_t threshold)
{
    struct pressure_watch *watch = &group->pressure.watches[kind];
    int fd, r;

    pressure_unwatch(watch);
    if (!config_is_elastic(group->config) || threshold == USEC_INFINITY)
        return;
    fd = r = pressure_open(group->context->pools->process->cgroups, kind);
    if (fd >= 0)
        r = pressure_watch(watch, group->context->loop, kind, fd, threshold, on_pressure);
    if (r < 0)
        log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_GROUP", group->name}),
                  "%s: %s pressure cannot be watched, so it has no effect on the size: %s",
                  group->name, name_of(kind), strerror(-r));
}

void group_watch_pressure(struct group *group)
{
    watch_one(group, PRESSURE_MEMORY, group->config->memory_pressure);
    watch_one(group, PRESSURE_CPU, group->config->cpu_pressure);
    watch_one(group, PRESSURE_IO, group->config->io_pressure);
}

void group_unwatch_pressure(struct group *group)
{
    for (enum pressure_kind kind = 0; kind < _PRESSURE_N_KINDS; kind++)
        pressure_unwatch(&group->pressure.watches[kind]);
}
