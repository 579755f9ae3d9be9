/* SPDX-License-Identifier: MIT */
#include "supervisor/parts.h"

#include "supervisor/control/interfaces.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/job-lookup.h"

void parts_connect(struct parts *parts)
{
    parts->pools = (struct pool_context){
        .loop = parts->loop,
        .events = &parts->events,
        .log = &parts->log,
        .deaths = &parts->deaths,
        .jobs = &parts->jobs,
        .messages = &parts->messages,
        .process = &parts->process,
        .submits = &parts->submits,
        .announcements = &parts->announcements,
        .stock = &parts->stock,
        .random = &parts->random,
        .runtime_directory = parts->runtime_directory,
    };
    parts->groups = (struct group_context){
        .loop = parts->loop,
        .registry = &parts->registry,
        .jobs = &parts->jobs,
        .durable = &parts->durable,
        .alarms = &parts->alarms,
        .events = &parts->events,
        .log = &parts->log,
        .limits = &parts->limits,
        .stops = &parts->stops,
        .deaths = &parts->deaths,
        .messages = &parts->messages,
        .random = &parts->random,
        .pools = &parts->pools,
        .group_of = registry_group_of,
        .find_after_oom = registry_find_after_oom,
        .begin_lookup = job_lookup_begin,
        .end_lookup = job_lookup_end,
    };
    limit_table_init(&parts->limits, parts->loop);
    settings_init(&parts->stops, &STOP_ROWS);
    plans_init(&parts->plans, &parts->groups, &parts->process.kept);
    parts->durable.jobs = &parts->jobs;
    parts->durable.inherited = &parts->messages.inherited;
    parts->durable.written = cell_on_written;
    parts->process.events = &parts->events;
    parts->process.log = &parts->log;
    parts->messages.loop = parts->loop;
    parts->messages.alarms = &parts->alarms;
    parts->messages.events = &parts->events;
    parts->messages.log = &parts->log;
    parts->messages.deaths = &parts->deaths;
    parts->messages.find_in_groups = registry_find_actor;
    parts->messages.groups = &parts->registry;
    parts->control.loop = parts->loop;
    parts->control.durable = &parts->durable;
    parts->control.registry = &parts->registry;
    parts->control.jobs = &parts->jobs;
    parts->control.messages = &parts->messages;
    parts->control.plans = &parts->plans;
    parts->control.events = &parts->events;
    parts->control.deaths = &parts->deaths;
    parts->control.log = &parts->log;
    parts->control.process = &parts->process;
    parts->control.submits = &parts->submits;
    parts->control.interfaces = control_interfaces;
    parts->control.groups = &parts->groups;
}
