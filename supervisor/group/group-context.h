/* SPDX-License-Identifier: MIT */
#pragma once

/* What group/ needs of the supervisor; parts.c fills it in. */

#include <sys/types.h>

struct alarms;
struct backoff_random;
struct cell;
struct death_log;
struct durable_jobs;
struct event_bus;
struct group;
struct job;
struct job_lookup;
struct job_table;
struct limit_table;
struct limited_log;
struct loop;
struct message_context;
struct pool_context;
struct protocol_id;
struct registry;
struct settings;

struct group_context {
    struct loop *loop;
    struct registry *registry;
    struct job_table *jobs;
    struct durable_jobs *durable;
    struct alarms *alarms;
    struct event_bus *events;
    struct limited_log *log;
    struct limit_table *limits;
    struct settings *stops; /* groups that stay stopped when the supervisor starts */
    struct death_log *deaths;
    struct message_context *messages;
    struct backoff_random *random;
    const struct pool_context *pools;
    struct group *(*group_of)(const struct registry *registry, const char *address);
    struct cell *(*find_after_oom)(const struct registry *registry, const struct job *job);
    /* job_lookup_begin() and job_lookup_end(). */
    int (*begin_lookup)(struct job_lookup *lookup, const struct group_context *context,
                        const struct protocol_id *id, uid_t asker);
    void (*end_lookup)(struct job_lookup *lookup);
};
