/* SPDX-License-Identifier: MIT */
#pragma once

/* What pool/ needs of the supervisor; parts.c fills it in. */

struct backoff_random;
struct death_log;
struct event_bus;
struct job_table;
struct limited_log;
struct loop;
struct message_context;
struct process_context;
struct submit_server;
struct work_queue;

struct pool_context {
    struct loop *loop;
    struct event_bus *events;
    struct limited_log *log;
    struct death_log *deaths;
    struct job_table *jobs;
    struct message_context *messages;
    struct process_context *process;
    const struct submit_server *submits; /* for the sockets of workers */
    struct work_queue *announcements;    /* to workers that are adopted */
    struct endpoint_stock *stock;        /* of the next worker */
    struct backoff_random *random;
    const char *runtime_directory; /* for the notify sockets of services */
};
