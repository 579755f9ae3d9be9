/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of group/ need of the supervisor. The composition root fills it in. */

struct alarms;
struct backoff_random;
struct context;
struct dead_letters;
struct death_log;
struct event_bus;
struct job_table;
struct limited_log;
struct loop;
struct pool_context;
struct registry;

struct group_context {
    struct loop *loop;
    struct registry *registry;
    struct job_table *jobs;
    struct alarms *alarms;
    struct event_bus *events;
    struct limited_log *log;
    struct death_log *deaths;
    struct dead_letters *dead_letters;
    struct backoff_random *random;
    const struct pool_context *pools;
    struct context *context; /* handed on to actors, not looked into */
};
