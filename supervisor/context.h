/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of the supervisor share. The supervisor (composition root) fills it in and
 * outlives everybody who holds it; nobody else knows the supervisor itself.
 */

#include "shared/base/clock.h"
#include "supervisor/config/config.h"
#include "supervisor/control/control-context.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/message/message-context.h"
#include "supervisor/pool/pool-context.h"
#include "supervisor/process/backoff.h"
#include "supervisor/process/process.h"

struct loop;

struct context {
    struct loop *loop;
    struct registry registry;
    struct job_table jobs;
    struct message_context messages;
    struct alarms alarms;
    struct event_bus events;
    struct death_log deaths;
    struct limited_log log;
    struct pool_context pools;
    struct group_context groups;
    struct process_context process;
    struct control_context control;
    struct backoff_random random;
    const char *runtime_directory; /* for the notify sockets of services */
};

/* Once the loop is there: hands the folders of the supervisor what they need of it. */
void context_share(struct context *context);
