/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of the supervisor share. The supervisor (composition root) fills it in and
 * outlives everybody who holds it; nobody else knows the supervisor itself.
 */

#include "../shared/clock.h"
#include "actor.h"
#include "alarm.h"
#include "ask.h"
#include "backoff.h"
#include "config.h"
#include "dead-letter.h"
#include "death.h"
#include "event.h"
#include "job.h"
#include "log-limit.h"
#include "pacer.h"
#include "registry.h"
#include "schedule.h"
#include "spawner.h"
#include <sys/resource.h>

struct cgroup_tree;
struct loop;
struct journal;

enum context_state {
    CONTEXT_STARTING,
    CONTEXT_RUNNING,
    CONTEXT_RELOADING,
    CONTEXT_STOPPING,
};

struct reload_call;

struct context {
    struct loop *loop;
    const struct config_daemon *config;
    struct registry registry;
    struct job_table jobs;
    struct actor_table actors;
    struct ask_table asks;
    struct schedule_table schedules;
    struct alarms alarms;
    struct event_bus events;
    struct death_log deaths;
    struct dead_letters dead_letters;
    struct log_limits log_limits;
    struct pacer starts, burials;
    struct spawner spawner;
    struct pacer answers; /* long ones, in parts */
    struct backoff_random random;
    struct cgroup_tree *cgroups;   /* NULL = process groups only */
    struct journal *journal;       /* where workers' output goes; NULL = standard error */
    const char *runtime_directory; /* for the notify sockets of services */
    const char *cgroups_text;      /* "delegated: memory pids cpu", or what is missing */
    struct rlimit nofile;          /* as we were started with it: workers get it back */
    pid_t keeper;                  /* the main process; 0 = none */
    int fds_for_all; /* descriptors from this number on are no stranger's; 0 = all are */
    enum context_state state;
    usec_t started_at; /* realtime */
    /* Reads the configuration again, when it is this call's turn; its done() is called in any
     * case. */
    void (*reload)(struct context *context, struct reload_call *call);
};

/* "starting", "running", "reloading", "stopping". Static. */
const char *context_state_to_string(enum context_state state);
