/* SPDX-License-Identifier: MIT */
#pragma once

/* The parts of the supervisor. Each folder gets a small struct with those that it needs. */

#include "shared/base/clock.h"
#include "supervisor/channel/endpoint.h"
#include "supervisor/config/config.h"
#include "supervisor/control/control-context.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/group/cell/limit-table.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/message-context.h"
#include "supervisor/pool/pool-context.h"
#include "supervisor/process/backoff.h"
#include "supervisor/process/process.h"
#include "supervisor/process/submit-socket.h"
#include "supervisor/schedule/plans.h"
#include "supervisor/store/durable-job.h"

struct parts {
    struct loop *loop;
    struct registry registry;
    struct limit_table limits;
    struct settings stops;
    struct job_table jobs;
    struct durable_jobs durable;
    struct message_context messages;
    struct alarms alarms;
    struct event_bus events;
    struct death_log deaths;
    struct limited_log log;
    struct pool_context pools;
    struct group_context groups;
    struct plans plans;
    struct process_context process;
    struct submit_server submits;
    struct work_queue announcements;
    struct endpoint_stock stock;
    struct control_context control;
    struct backoff_random random;
    const char *runtime_directory; /* for the notify sockets of services */
};

/* Fills in the structs of the folders. `loop` and `runtime_directory` are set. */
void parts_connect(struct parts *parts);
