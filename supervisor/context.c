/* SPDX-License-Identifier: MIT */
#include "supervisor/context.h"

#include "supervisor/control/interfaces.h"
#include "supervisor/group/group.h"

void context_share(struct context *context)
{
    context->pools = (struct pool_context){
        .loop = context->loop,
        .events = &context->events,
        .log = &context->log,
        .deaths = &context->deaths,
        .jobs = &context->jobs,
        .messages = &context->messages,
        .process = &context->process,
        .random = &context->random,
        .runtime_directory = context->runtime_directory,
    };
    context->groups = (struct group_context){
        .loop = context->loop,
        .registry = &context->registry,
        .jobs = &context->jobs,
        .alarms = &context->alarms,
        .events = &context->events,
        .log = &context->log,
        .deaths = &context->deaths,
        .messages = &context->messages,
        .random = &context->random,
        .pools = &context->pools,
        .context = context,
    };
    context->process.events = &context->events;
    context->process.log = &context->log;
    context->messages.loop = context->loop;
    context->messages.alarms = &context->alarms;
    context->messages.events = &context->events;
    context->messages.log = &context->log;
    context->messages.deaths = &context->deaths;
    context->messages.find_in_groups = group_find_actor;
    context->messages.groups = &context->registry;
    context->control.loop = context->loop;
    context->control.registry = &context->registry;
    context->control.jobs = &context->jobs;
    context->control.messages = &context->messages;
    context->control.events = &context->events;
    context->control.deaths = &context->deaths;
    context->control.log = &context->log;
    context->control.process = &context->process;
    context->control.interfaces = control_interfaces;
    context->control.attachments = (struct attachment_context){
        .loop = context->loop,
        .registry = &context->registry,
        .jobs = &context->jobs,
        .messages = &context->messages,
    };
}
