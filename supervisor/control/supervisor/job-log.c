/* SPDX-License-Identifier: MIT */
#include "supervisor/control/supervisor/job-log.h"

#include "shared/protocol/job-id.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/jobs/job-search.h"
#include "supervisor/control/supervisor/line-stream.h"
#include "supervisor/event/output-log.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job-waiter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * An id is free again some time after its job has ended, so that several jobs may have left lines
 * with it, in any groups. Those of the last one are shown. If it is not known any more, a first
 * walk finds out when it was accepted.
 */
struct job_log {
    struct line_stream stream;
    char id[PROTOCOL_ID_TEXT];                 /* as lines have it */
    bool submitted;                            /* by the user who asks */
    char job_group[CONFIG_GROUP_NAME_MAX + 1]; /* the job's; "" = it is not known */
    struct job_waiter *waiter;                 /* for its end; NULL = not followed */
    bool searches;                             /* this is the first walk */
    usec_t accepted_at;                        /* realtime: when the job was accepted */
    char group[CONFIG_GROUP_NAME_MAX + 1];     /* the group whose lines were read last */
    uint64_t line;                             /* the last one that was looked at; 0 = all were */
};

#define job_log_of(pointer) list_entry(pointer, struct job_log, stream)

/* Who may read what the job wrote may do so whatever the group. A reload may change that. The job
 * itself may have left memory since the first part. */
static bool may_read(const struct job_log *log, const struct group *group)
{
    const struct request *request = log->stream.parts.request;
    const struct group *own = registry_find(request->context->registry, log->job_group);

    return log->submitted || (own && access_group(request, own)) || access_group(request, group);
}

/* The log to go on with; NULL = all are read. */
static const struct output_log *next_log(struct job_log *log)
{
    const struct registry *registry = log->stream.parts.request->context->registry;
    const struct group *group = log->line > 0 ? registry_find(registry, log->group) : NULL;

    if (!group) {
        group = registry_after(registry, log->group);
        log->line = 0;
    }
    while (group && !may_read(log, group)) {
        group = registry_after(registry, group->name);
        log->line = 0;
    }
    if (!group)
        return NULL;
    (void)snprintf(log->group, sizeof(log->group), "%s", group->name);
    return &group->pools.output;
}

static void look_at(struct job_log *log, const struct output_line *line)
{
    if (strcmp(line->job, log->id) != 0)
        return;
    if (log->searches && line->job_at > log->accepted_at)
        log->accepted_at = line->job_at;
    if (!log->searches && (line->job_at == log->accepted_at || line->at >= log->accepted_at))
        reply_string(request_part_reply(&log->stream.parts), NULL, line->text);
}

/* Returns false if the part is full before the end. */
static bool look_at_lines(struct job_log *log, const struct output_log *lines)
{
    const struct output_line *line = output_log_after(lines, log->line);

    for (; line; line = output_log_next(lines, line)) {
        log->line = line->id;
        look_at(log, line);
        if (request_part_full(&log->stream.parts, 1))
            return false;
    }
    log->line = 0;
    return true;
}

/* Returns whether there is another walk. */
static bool begin_next_walk(struct job_log *log)
{
    const bool searched = log->searches;

    log->searches = false;
    log->group[0] = '\0';
    return searched;
}

static bool write_job_log(struct request_parts *parts)
{
    struct job_log *log = job_log_of(list_entry(parts, struct line_stream, parts));
    const struct output_log *lines;

    do {
        lines = next_log(log);
        if (!lines && !begin_next_walk(log))
            return true;
    } while ((!lines || look_at_lines(log, lines)) && !request_part_full(parts, 1));
    return false;
}

static void on_line(struct event_subscriber *follower, const struct event *event)
{
    struct job_log *log = job_log_of(list_entry(follower, struct line_stream, follower));
    const struct job *job = log->waiter ? log->waiter->job : NULL;

    if (!job || !event->job || strcmp(event->job, log->id) != 0 || !may_read(log, job->group))
        return;
    reply_string(line_stream_reply(&log->stream), NULL, event->message);
    line_stream_sent(&log->stream);
}

/* The job's output was read before its end is reported. */
static void on_change(struct job_waiter *waiter, struct job *job)
{
    struct job_log *log = waiter->owner;

    if (!job_ended(job))
        return;
    log->waiter = job_waiter_free(log->stream.parts.request->context->jobs, waiter);
    line_stream_end(&log->stream);
}

static void free_job_log(struct request_parts *parts)
{
    struct job_log *log = job_log_of(list_entry(parts, struct line_stream, parts));

    if (log->waiter)
        (void)job_waiter_free(parts->request->context->jobs, log->waiter);
    line_stream_deinit(&log->stream);
    free(log);
}

/* Returns false when out of memory. */
static bool follow(struct job_log *log, struct request *request, struct job *job)
{
    log->waiter = job_waiter_new(request->context->jobs, job);
    if (!log->waiter)
        return false;
    log->waiter->changed = on_change;
    log->waiter->owner = log;
    return true;
}

/* `job` NULL: it is not known. A job that has ended writes nothing any more. */
static void begin(struct request *request, struct job *job)
{
    const struct job_log_parameters *given = request->parameters;
    struct job_log *log = request_allocate(request, sizeof(*log));
    struct protocol_id id;

    if (!log)
        return;
    (void)protocol_id_parse(&id, given->job);
    (void)protocol_id_format(&id, log->id);
    log->submitted = job && access_is_submitter(request, job);
    (void)snprintf(log->job_group, sizeof(log->job_group), "%s", job ? job->group->name : "");
    log->accepted_at = job ? job->created_at : 0;
    log->searches = !job;
    log->stream.parts.write = write_job_log;
    log->stream.parts.free = free_job_log;
    log->stream.follower.fn = on_line;
    line_stream_begin(&log->stream, request,
                      given->follow && job && !job_ended(job) && follow(log, request, job));
}

static void begin_unknown(struct request *request, int error)
{
    (void)error; /* what is kept can be shown all the same */
    begin(request, NULL);
}

void control_job_log(struct request *request)
{
    const struct job_log_parameters *given = request->parameters;
    struct protocol_id id;
    struct job *job;

    if (protocol_id_parse(&id, given->job) < 0) {
        (void)request_refuse(request, "job", "the id of a job");
        return;
    }
    job = control_find_job(request, given->job, begin_unknown);
    if (!job)
        return;
    /* Access to only some groups is not enough for a job of another group. */
    if (access_job(request, job) ||
        access_demand(request, job->group, "this shows what workers wrote"))
        begin(request, job);
}
