/* SPDX-License-Identifier: MIT */
#include "supervisor/control/supervisor/job-log.h"

#include "shared/protocol/job-id.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/event/event.h"
#include "supervisor/event/output-log.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job.h"
#include "supervisor/varlink/request-parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job_log {
    struct request_parts parts;
    struct event_subscriber follower;
    char id[PROTOCOL_ID_TEXT]; /* as lines have it */
    bool all;                  /* the client may read what the job wrote, whatever the group */
    char group[CONFIG_GROUP_NAME_MAX + 1]; /* the group whose lines were read last */
    uint64_t line;                         /* the last one that was looked at; 0 = all were */
};

#define job_log_of(pointer) list_entry(pointer, struct job_log, parts)

/* The log to go on with; NULL = all are read. A job may have left lines in any group: ids are free
 * again after a time. */
static const struct output_log *next_log(struct job_log *log)
{
    const struct registry *registry = log->parts.request->context->registry;
    const struct group *group = log->line > 0 ? registry_find(registry, log->group) : NULL;

    if (!group) {
        group = registry_after(registry, log->group);
        log->line = 0;
        while (group && !log->all && !access_group(log->parts.request, group))
            group = registry_after(registry, group->name);
    }
    if (!group)
        return NULL;
    (void)snprintf(log->group, sizeof(log->group), "%s", group->name);
    return &group->pools.output;
}

/* Writes the job's lines of this log. Returns false if the part is full before the end. */
static bool write_lines(struct job_log *log, const struct output_log *lines)
{
    const struct output_line *line = output_log_after(lines, log->line);

    for (; line; line = output_log_next(lines, line)) {
        log->line = line->id;
        if (strcmp(line->job, log->id) == 0)
            reply_string(request_part_reply(&log->parts), NULL, line->text);
        if (request_part_full(&log->parts, 1))
            return false;
    }
    log->line = 0;
    return true;
}

static bool write_job_log(struct request_parts *parts)
{
    struct job_log *log = job_log_of(parts);
    const struct output_log *lines;

    do {
        lines = next_log(log);
        if (!lines)
            return true;
    } while (write_lines(log, lines) && !request_part_full(parts, 1));
    return false;
}

static bool may_read(const struct request *request, const struct protocol_id *id,
                     const char *worker)
{
    const struct job *job = job_by_id(request->context->jobs, id);

    if (job && job->group)
        return access_job(request, job);
    return access_group(request,
                        worker ? registry_group_of(request->context->registry, worker) : NULL);
}

static void on_line(struct event_subscriber *follower, const struct event *event)
{
    struct job_log *log = list_entry(follower, struct job_log, follower);
    struct request *request = log->parts.request;
    struct protocol_id id;
    struct reply *reply;

    if (!event->job || strcmp(event->job, log->id) != 0 || protocol_id_parse(&id, log->id) < 0 ||
        !may_read(request, &id, event->worker))
        return;
    reply = request_begin(request);
    reply_array(reply, "lines");
    reply_string(reply, NULL, event->message);
    reply_end_array(reply);
    request_end_more(request);
}

static void stay_for_lines(struct request_parts *parts)
{
    event_subscribe(&parts->request->context->events->line_subscribers,
                    &job_log_of(parts)->follower);
}

static void free_job_log(struct request_parts *parts)
{
    event_unsubscribe(&job_log_of(parts)->follower);
    free(job_log_of(parts));
}

/* Refuses a client that may not read what the job wrote. One that may read those of some groups
 * only gets their lines. */
static bool demand(struct request *request, const struct protocol_id *id)
{
    const struct job *job = job_by_id(request->context->jobs, id);

    if (job && job->group && !access_job(request, job))
        return access_demand(request, job->group, "this shows what workers wrote");
    return true;
}

void control_job_log(struct request *request, const char *text, bool follow)
{
    struct protocol_id id;
    struct job_log *log;

    if (protocol_id_parse(&id, text) < 0) {
        (void)request_refuse(request, "job", "the id of a job");
        return;
    }
    if (!demand(request, &id))
        return;
    log = request_allocate(request, sizeof(*log));
    if (!log)
        return;
    log->parts = (struct request_parts){.array = "lines",
                                        .may_continue = true,
                                        .write = write_job_log,
                                        .stay = follow ? stay_for_lines : NULL,
                                        .free = free_job_log};
    list_init(&log->follower.link);
    log->follower.fn = on_line;
    (void)protocol_id_format(&id, log->id);
    log->all = may_read(request, &id, NULL);
    request_in_parts(request, &log->parts);
}
