/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetLog: the last output of workers or what is kept of a job's output, and
 * lines as they come. */

#include "shared/protocol/job-id.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/jobs.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/event.h"
#include "supervisor/event/output-log.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/capture.h"
#include "supervisor/varlink/request-parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the array "lines" in parts, and with "follow" further lines as they come ---- */

/* Embedded in the state of the call, which is on the heap and zeroed. */
struct line_stream {
    struct request_parts parts;                /* the owner sets `free` */
    bool (*step)(struct request_parts *parts); /* of the owner: as in `parts`, for kept lines */
    struct event_subscriber follower;          /* the owner sets `fn`, which calls add_line() */
    /* Private: lines that came since, a NUL behind each, which are sent when their turn comes. */
    char *lines;
    size_t start, end, allocated;
    bool over;
};

#define stream_of(pointer) list_entry(pointer, struct line_stream, parts)

static struct account *account_of(const struct line_stream *stream)
{
    return stream->parts.request->connection->account;
}

static void free_lines(struct line_stream *stream)
{
    stream->start = stream->end = 0;
    account_free(account_of(stream), ACCOUNT_ANSWERS, &stream->lines, &stream->allocated);
}

/* Returns room for so many bytes more; NULL = too many wait. */
static char *make_room(struct line_stream *stream, size_t size)
{
    size_t wanted = stream->end + size;

    if (wanted > stream->allocated && stream->start > 0) {
        memmove(stream->lines, stream->lines + stream->start, stream->end - stream->start);
        wanted -= stream->start;
        stream->end -= stream->start;
        stream->start = 0;
    }
    if (wanted > stream->allocated &&
        (wanted > CONNECTION_OUTPUT_MAX ||
         account_realloc(account_of(stream), ACCOUNT_ANSWERS, &stream->lines, &stream->allocated,
                         wanted < 4096 ? 4096 : 2 * wanted) < 0))
        return NULL;
    return stream->lines + stream->end;
}

/* Appends the line to those that are to be sent, with the prefix `worker` if given. */
static void add_line(struct line_stream *stream, const char *worker, const char *line)
{
    struct connection *connection = stream->parts.request->connection;
    const size_t size = (worker ? strlen(worker) + 2 : 0) + strlen(line) + 1;
    char *room = make_room(stream, size);

    if (connection->dead)
        return;
    if (!room) {
        connection->handler->cut_off(connection, "it does not read the lines that it follows");
        connection_close(connection);
        return;
    }
    (void)snprintf(room, size, "%s%s%s", worker ? worker : "", worker ? ": " : "", line);
    stream->end += size;
    request_parts_wake(&stream->parts);
}

/* No further line comes: ends the call once it has sent all. */
static void line_stream_end(struct line_stream *stream)
{
    stream->over = true;
    if (list_linked(&stream->follower.link))
        request_parts_wake(&stream->parts);
}

static bool step_lines(struct request_parts *parts)
{
    struct line_stream *stream = stream_of(parts);
    const char *line = stream->lines + stream->start;

    if (!list_linked(&stream->follower.link))
        return stream->step(parts);
    if (stream->start == stream->end)
        return false;
    reply_string(request_part_reply(parts), NULL, line);
    stream->start += strlen(line) + 1;
    if (stream->start == stream->end)
        free_lines(stream);
    return true;
}

static void stay(struct request_parts *parts)
{
    struct line_stream *stream = stream_of(parts);

    if (!list_linked(&stream->follower.link))
        event_subscribe(&parts->request->context->events->line_subscribers, &stream->follower);
    if (stream->over)
        request_parts_end(parts);
}

/* Answers the request; the first part immediately. */
static void line_stream_begin(struct line_stream *stream, struct request *request, bool follow)
{
    stream->parts.array = "lines";
    stream->parts.may_continue = true;
    stream->parts.step = step_lines;
    stream->parts.stay = follow ? stay : NULL;
    list_init(&stream->follower.link);
    request_in_parts(request, &stream->parts);
}

/* To be called by `parts.free`. */
static void line_stream_deinit(struct line_stream *stream)
{
    event_unsubscribe(&stream->follower);
    free_lines(stream);
}

/* ---- what a job wrote ---- */

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

/* Whoever may read the job's output may read it in any group. A reload may change that. The job
 * itself may have left memory since the first part. */
static bool may_read(const struct job_log *log, const struct group *group)
{
    const struct request *request = log->stream.parts.request;
    const struct group *own = registry_find(request->context->registry, log->job_group);

    return log->submitted || (own && access_group(request, own)) || access_group(request, group);
}

/* The log to continue with; NULL = all are read. */
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

/* Stops when the part is full. */
static void look_at_lines(struct job_log *log, const struct output_log *lines)
{
    const struct output_line *line = output_log_after(lines, log->line);

    for (; line; line = output_log_next(lines, line)) {
        log->line = line->id;
        look_at(log, line);
        if (request_part_full(&log->stream.parts, 1))
            return;
    }
    log->line = 0;
}

/* Returns whether there is another walk. */
static bool begin_next_walk(struct job_log *log)
{
    const bool searched = log->searches;

    log->searches = false;
    log->group[0] = '\0';
    return searched;
}

static bool step_job_log(struct request_parts *parts)
{
    struct job_log *log = job_log_of(list_entry(parts, struct line_stream, parts));
    const struct output_log *lines = next_log(log);

    if (!lines)
        return begin_next_walk(log);
    look_at_lines(log, lines);
    return true;
}

static void on_job_line(struct event_subscriber *follower, const struct event *event)
{
    struct job_log *log = job_log_of(list_entry(follower, struct line_stream, follower));
    const struct job *job = log->waiter ? log->waiter->job : NULL;

    if (!job || !event->job || strcmp(event->job, log->id) != 0 || !may_read(log, job->group))
        return;
    add_line(&log->stream, NULL, event->message);
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
static void begin_job_log(struct request *request, struct job *job)
{
    struct job_log *log = request_allocate(request, sizeof(*log));
    struct protocol_id id;

    if (!log)
        return;
    (void)protocol_id_parse(&id, request_string(request, "job"));
    (void)protocol_id_format(&id, log->id);
    log->submitted = job && access_is_submitter(request, job);
    (void)snprintf(log->job_group, sizeof(log->job_group), "%s", job ? job->group->name : "");
    log->accepted_at = job ? job->created_at : 0;
    log->searches = !job;
    log->stream.step = step_job_log;
    log->stream.parts.free = free_job_log;
    log->stream.follower.fn = on_job_line;
    line_stream_begin(&log->stream, request,
                      request_bool(request, "follow") && job && !job_ended(job) &&
                          follow(log, request, job));
}

static void begin_unknown(struct request *request, int error)
{
    (void)error; /* what is kept can be shown all the same */
    begin_job_log(request, NULL);
}

static void get_log_of_job(struct request *request)
{
    const char *name = request_string(request, "job");
    struct protocol_id id;
    struct job *job;

    if (protocol_id_parse(&id, name) < 0) {
        (void)request_refuse(request, "job", "the id of a job");
        return;
    }
    job = control_find_job(request, name, begin_unknown);
    if (!job)
        return;
    /* Access to only some groups is not enough for a job of another group. */
    if (access_job(request, job) ||
        access_demand(request, job->group, "this shows what workers wrote"))
        begin_job_log(request, job);
}

/* ---- what workers wrote ---- */

/* Writes a line of output, with the prefix `worker` if given. */
static void report_line(struct reply *reply, const char *worker, const char *line, size_t size)
{
    char text[DEATH_WORKER_MAX + CAPTURE_TAIL_MAX + 2];
    size_t length;

    if (!worker) {
        reply_text(reply, NULL, line, size);
        return;
    }
    length = (size_t)snprintf(text, DEATH_WORKER_MAX + 2, "%s: ", worker);
    memcpy(text + length, line, size);
    reply_text(reply, NULL, text, length + size);
}

static void report_output(struct reply *reply, const struct slot *slot, bool with_name)
{
    char output[CAPTURE_TAIL_MAX + 1];
    size_t size = process_last_output(&slot->worker.process, 0, output, sizeof(output));

    /* A new worker without output shows its predecessor's last output. */
    if (size == 0 && slot->last_death && slot->last_death->stderr_text) {
        size = slot->last_death->stderr_size;
        memcpy(output, slot->last_death->stderr_text, size);
    }
    for (size_t start = 0; start < size && reply->size < REPORT_DETAIL_MAX;) {
        const char *end = memchr(output + start, '\n', size - start);
        size_t length = end ? (size_t)(end - output) - start : size - start;

        report_line(reply, with_name ? slot->name : NULL, output + start, length);
        start += length + 1;
    }
}

struct log {
    struct line_stream stream;
    uint64_t group; /* its reference */
    bool whole_group;
    unsigned index; /* of the only worker */
    bool only_worker;
    struct list_cursor cells;
    const struct cell *cell; /* the cursor's, valid only while they are equal */
    size_t worker;           /* cursor */
};

#define log_of(pointer) list_entry(pointer, struct log, stream)

/* The next worker; NULL at the end. */
static const struct slot *next_of_log(struct log *log, const struct group *group)
{
    const struct cell *cell;

    while ((cell = cell_table_at(&group->cells, &log->cells))) {
        const struct slot *slot;

        if (cell != log->cell)
            log->worker = 0;
        log->cell = cell;
        slot = pool_next_slot(&log->cell->pool, &log->worker);
        if (slot)
            return slot;
        if (!log->whole_group)
            return NULL;
        list_cursor_advance(&log->cells);
    }
    return NULL;
}

/* A reload may have changed the client's permissions, or the group behind the name. */
static const struct group *readable_group(const struct log *log)
{
    const struct request *request = log->stream.parts.request;
    const struct group *group = registry_get(request->context->registry, log->group);

    return group && access_group(request, group) ? group : NULL;
}

static bool step_log(struct request_parts *parts)
{
    struct log *log = log_of(list_entry(parts, struct line_stream, parts));
    const struct group *group = readable_group(log);
    const struct slot *slot = group ? next_of_log(log, group) : NULL;

    if (!slot)
        return false;
    if (!log->only_worker || (slot->index == log->index && slot->role == SLOT_MEMBER))
        report_output(request_part_reply(parts), slot, !log->only_worker);
    return true;
}

static void on_line(struct event_subscriber *follower, const struct event *event)
{
    struct log *log = log_of(list_entry(follower, struct line_stream, follower));
    const char *target = request_string(log->stream.parts.request, "target");

    if (!report_is_below(event->worker, target) || !readable_group(log))
        return;
    add_line(&log->stream, log->only_worker ? NULL : event->worker, event->message);
}

static void free_log(struct request_parts *parts)
{
    struct log *log = log_of(list_entry(parts, struct line_stream, parts));

    line_stream_deinit(&log->stream);
    list_cursor_end(&log->cells);
    free(log);
}

static void get_log_of_target(struct request *request)
{
    struct registry_target target;
    struct log *log;

    if (!control_find_target(request, request_string(request, "target"), &target) ||
        !access_demand(request, target.group, "this shows what workers wrote"))
        return;
    log = request_allocate(request, sizeof(*log));
    if (!log)
        return;
    log->stream.step = step_log;
    log->stream.parts.free = free_log;
    log->stream.follower.fn = on_line;
    log->group = target.group->reference;
    log->whole_group = !target.cell;
    log->only_worker = target.slot != NULL;
    log->index = target.slot ? target.slot->index : 0;
    list_cursor_begin(&log->cells, &target.group->cells.cursors, &target.group->cells.cells, false);
    if (target.cell)
        log->cells.at = &target.cell->link;
    line_stream_begin(&log->stream, request, request_bool(request, "follow"));
}

static void get_log(struct request *request)
{
    if (request_has(request, "target") == request_has(request, "job"))
        (void)request_refuse(request, "target", "either this or job");
    else if (request_has(request, "job"))
        get_log_of_job(request);
    else
        get_log_of_target(request);
}

const struct request_method control_log_methods[] = {
    {"GetLog", get_log, .changes = false},
    {0},
};
