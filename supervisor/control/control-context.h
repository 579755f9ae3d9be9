/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The parts of the supervisor that the methods of the control socket use. The composition root owns
 * this struct, keeps it current, and outlives all users.
 */

#include "shared/base/clock.h"
#include "supervisor/keeper/message.h"
#include <stdbool.h>
#include <sys/types.h>

struct config_daemon;
struct death_log;
struct durable_jobs;
struct event_bus;
struct group_context;
struct history;
struct job_table;
struct limited_log;
struct loop;
struct message_context;
struct plans;
struct process_context;
struct registry;
struct reload_call;
struct request_interface;
struct submit_server;
struct upgrade_call;

/* The state of the supervisor as GetInfo reports it. */
enum control_state {
    CONTROL_STARTING,
    CONTROL_RUNNING,
    CONTROL_RELOADING,
    CONTROL_STOPPING,
};

struct control_context {
    struct loop *loop;
    const struct durable_jobs *durable;
    struct registry *registry;
    struct job_table *jobs;
    struct message_context *messages;
    struct plans *plans;
    struct history *history; /* NULL = there is none */
    struct event_bus *events;
    struct death_log *deaths;
    struct limited_log *log;
    const struct process_context *process;
    struct submit_server *submits; /* served by the control socket while there is one */
    const struct group_context *groups;
    struct request_interface *const *interfaces; /* NULL-terminated */

    const struct config_daemon *config; /* replaced by a reload */
    /* Why nothing is taken over or started yet: the configuration has a problem. NULL = it has none
     */
    const char *config_problem;
    /* Mistakes in files of schedules and exchanges, which are missing since the start: "FILE:LINE:
     * TEXT" */
    char **kept_back;
    const char *cgroups_text; /* "delegated: memory pids cpu", or what is missing */
    pid_t keeper;             /* the main process; 0 = none */
    int fds_for_all; /* from this descriptor on, only for clients that may change things; 0 = none
                      */
    int fds_for_clients; /* from this one on, only for starting workers; 0 = none */
    enum control_state state;
    struct message_held_end predecessors; /* crashes, upgrades, safe mode */
    usec_t started_at;                    /* realtime */
    /* Opens the store, if there is none: a setting is to be written. Returns NULL, or why that is
     * impossible; static. */
    const char *(*want_store)(void *userdata);
    /* Requests a reload; calls call->done() in any case. */
    void (*reload)(void *userdata, struct reload_call *call);
    /* Requests an upgrade. */
    void (*upgrade)(void *userdata, struct upgrade_call *call);
    void *userdata;
};
