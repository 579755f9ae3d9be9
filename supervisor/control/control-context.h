/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the methods of the control socket need of the supervisor. The composition root fills it in,
 * keeps it up to date, and outlives everybody who holds it.
 */

#include "shared/base/clock.h"
#include "supervisor/client/attachment.h"
#include "supervisor/config/config.h"
#include "supervisor/control/control-state.h"
#include "supervisor/event/death.h"
#include "supervisor/event/event.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job.h"
#include "supervisor/loop/loop.h"
#include "supervisor/message/message-context.h"
#include <sys/types.h>

struct limited_log;
struct process_context;
struct reload_call;
struct request_interface;

struct control_context {
    struct loop *loop;
    struct registry *registry;
    struct job_table *jobs;
    struct message_context *messages;
    struct event_bus *events;
    struct death_log *deaths;
    struct limited_log *log;
    const struct process_context *process;
    struct attachment_context attachments;
    const struct request_interface *const *interfaces; /* NULL ends it */

    const struct config_daemon *config; /* another one after a reload */
    const char *cgroups_text;           /* "delegated: memory pids cpu", or what is missing */
    pid_t keeper;                       /* the main process; 0 = none */
    int fds_for_all; /* descriptors from this number on are only for clients with permission to
                        change things; 0 = no bound */
    enum control_state state;
    usec_t started_at; /* realtime */
    /* Requests a reload; calls call->done() in any case. */
    void (*reload)(void *userdata, struct reload_call *call);
    void *userdata;
};
