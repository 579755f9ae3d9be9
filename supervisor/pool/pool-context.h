/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of pool/ need of the supervisor. The composition root fills it in. */

struct actor_table;
struct backoff_random;
struct context;
struct death_log;
struct event_bus;
struct job_table;
struct limited_log;
struct loop;
struct process_context;

struct pool_context {
    struct loop *loop;
    struct event_bus *events;
    struct limited_log *log;
    struct death_log *deaths;
    struct job_table *jobs;
    struct actor_table *actors;
    struct process_context *process;
    struct backoff_random *random;
    const char *runtime_directory; /* for the notify sockets of services */
    struct context *context;       /* handed on to actors, not looked into */
};
