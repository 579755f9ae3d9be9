/* SPDX-License-Identifier: MIT */
#include "supervisor/context.h"

void context_share(struct context *context)
{
    context->pools = (struct pool_context){
        .loop = context->loop,
        .events = &context->events,
        .log = &context->log,
        .deaths = &context->deaths,
        .jobs = &context->jobs,
        .actors = &context->actors,
        .process = &context->process,
        .random = &context->random,
        .runtime_directory = context->runtime_directory,
        .context = context,
    };
    context->groups = (struct group_context){
        .loop = context->loop,
        .registry = &context->registry,
        .jobs = &context->jobs,
        .alarms = &context->alarms,
        .events = &context->events,
        .log = &context->log,
        .deaths = &context->deaths,
        .dead_letters = &context->dead_letters,
        .random = &context->random,
        .pools = &context->pools,
        .context = context,
    };
    context->process.events = &context->events;
    context->process.log = &context->log;
}
