/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Writes the types Death, Worker, Group, Event and Job of the interfaces as JSON. Replies larger
 * than REPORT_DETAIL_MAX omit details (state pages, output, results, attempts).
 */

#include "supervisor/control/access.h"
#include "supervisor/process/process.h"
#include "supervisor/varlink/reply.h"
#include <stddef.h>

struct request;
struct cell;
struct control_context;
struct dead_letter;
struct death;
struct event;
struct group;
struct job;
struct payload;
struct slot;

#define REPORT_DETAIL_MAX ((size_t)2 << 20)
/* The limit for a reply about one job, whose result may nearly fill it. */
#define REPORT_SINGLE_MAX (((size_t)4 << 20) - 65536)
/* The largest "payload_start", in bytes. */
#define REPORT_EXCERPT_MAX 60

/*
 * Each function writes one object: as the member `key`, or if that is NULL, as an element of an
 * array. If the client of `request` may not read the contents, the object has "restricted": true
 * instead. A reply that has no room for all fails, see reply.h.
 */
/* `stack`: with all threads, which may take a millisecond. */
void report_death(struct reply *reply, const char *key, const struct request *request,
                  const struct death *death, bool stack);
#define REPORT_TOP_MAX 1600
/* Returns where the worker crashed or hung, in one line; NULL if that is not known, or the client
 * may not read it. */
const char *report_top(const struct request *request, const struct death *death);
/* Writes the members "top" and "stack" from the text of troupe-trace. */
void report_stack(struct reply *reply, const char *text, size_t size);
/* Writes "signal" or "exit_status". */
void report_exit(struct reply *reply, const struct death *death);
void report_worker(struct reply *reply, const struct request *request, struct slot *slot);
/* Writes the object without cells, workers and its end. */
void report_group_begin(struct reply *reply, const struct request *request,
                        const struct group *group);
void report_cell_begin(struct reply *reply, const struct cell *cell);
/* Returns when the oldest queued job of the group was created (realtime); 0 = none is queued. */
usec_t report_oldest(const struct group *group);
/* Returns "starting", "running", "reloading" or "stopping"; static. */
const char *report_state(const struct control_context *context);
/* Writes the limits of the group's jobs, its own and those that it uses; nothing if there are none.
 */
void report_limits_of(struct reply *reply, const struct group *group);
/* Writes all limits of jobs. */
void report_limits(struct reply *reply, const struct control_context *context);
/* Writes the group's limits of resources that have no effect on this machine. */
void report_unmet(struct reply *reply, const struct group *group);
/* Writes the keys of the group's sandbox; nothing if it has none. */
void report_sandbox(struct reply *reply, const struct group *group);
/* Writes what confines a process of a worker; nothing if nothing does, or it is not known. */
void report_confinement(struct reply *reply, const struct process *process);
void report_event(struct reply *reply, const struct request *request, const struct event *event);
/* Facts that a job without a group no longer has. */
struct report_view {
    const char *group; /* its name */
    bool open;         /* the client may read its contents */
};

/* `limit`: REPORT_DETAIL_MAX or REPORT_SINGLE_MAX. */
void report_job_as(struct reply *reply, const char *key, const struct request *request,
                   const struct job *job, size_t limit, const struct report_view *view);
/* Like report_job_as(), but for a job that has a group. */
void report_job(struct reply *reply, const char *key, const struct request *request,
                const struct job *job, size_t limit);
/* Writes "job" like report_job(), but of a job of which only the dead letter is left. */
void report_dead_job(struct reply *reply, const struct request *request,
                     const struct dead_letter *letter);

/*
 * Writes a Payload if the reply stays within `limit`. Returns 0, -EMSGSIZE (nothing is written), or
 * -errno of mapping a blob.
 */
int report_payload(struct reply *reply, const char *key, const struct payload *payload,
                   size_t limit);

/* Whether the event is about `target`, a group, a cell or a worker; NULL = any. */
bool report_event_matches(const struct event *event, const char *target);

/* Whether an address is `target` or below it: "group" has "group/key" and "group/0". */
bool report_is_below(const char *address, const char *target);

/* ---- what a group, cell, worker or job waits for: the array "waits", the decisive one first ----
 */

/* Writes the reasons why no job of the group would begin, whatever its key. */
void waits_of_group(struct reply *reply, const struct group *group);
void waits_of_cell(struct reply *reply, const struct cell *cell);
void waits_of_slot(struct reply *reply, const struct slot *slot);
/* Empty for a job that has ended. */
void waits_of_job(struct reply *reply, const struct job *job);

struct plan;
/* Writes how many slots of a schedule had each outcome. */
void report_slots(struct reply *reply, const struct plan *plan);
