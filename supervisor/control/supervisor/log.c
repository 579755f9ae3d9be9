/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetLog: the last output of workers, and lines as they come. What a job
 * wrote: see job-log.c. */

#include "shared/base/utf8.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/supervisor/job-log.h"
#include "supervisor/control/supervisor/line-stream.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/capture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a raw line of the tail, or an escaped one as followers get it. */
#define LINE_MAX_SIZE UTF8_ESCAPED_MAX(CAPTURE_LINE_MAX)
_Static_assert(LINE_MAX_SIZE >= CAPTURE_TAIL_MAX, "either fits");

/* Writes a line of output, with the prefix `worker` if given. */
static void report_line(struct reply *reply, const char *worker, const char *line, size_t size)
{
    char text[DEATH_WORKER_MAX + LINE_MAX_SIZE + 2];
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
    struct cell_cursor cells;
    const struct cell *cell; /* the cursor's, valid only while they are equal */
    size_t worker;           /* cursor */
};

#define log_of(pointer) list_entry(pointer, struct log, stream)

/* The next worker; NULL at the end. */
static const struct slot *next_of_log(struct log *log, const struct group *group)
{
    while (log->cells.next) {
        const struct slot *slot;

        if (log->cells.next != log->cell)
            log->worker = 0;
        log->cell = log->cells.next;
        slot = pool_next_slot(&log->cell->pool, &log->worker);
        if (slot)
            return slot;
        if (!log->whole_group)
            return NULL;
        cell_cursor_advance(&log->cells, &group->cells);
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

static bool write_log(struct request_parts *parts)
{
    struct log *log = log_of(list_entry(parts, struct line_stream, parts));
    const struct group *group = readable_group(log);
    const struct slot *slot;

    do {
        slot = group ? next_of_log(log, group) : NULL;
        if (!slot)
            return true;
        if (!log->only_worker || (slot->index == log->index && slot->role == SLOT_MEMBER))
            report_output(request_part_reply(parts), slot, !log->only_worker);
    } while (!request_part_full(parts, 1));
    return false;
}

static void on_line(struct event_subscriber *follower, const struct event *event)
{
    struct log *log = log_of(list_entry(follower, struct line_stream, follower));
    const struct job_log_parameters *given = log->stream.parts.request->parameters;

    if (!report_is_below(event->worker, given->target) || !readable_group(log))
        return;
    report_line(line_stream_reply(&log->stream), log->only_worker ? NULL : event->worker,
                event->message, strlen(event->message));
    line_stream_sent(&log->stream);
}

static void free_log(struct request_parts *parts)
{
    struct log *log = log_of(list_entry(parts, struct line_stream, parts));

    line_stream_deinit(&log->stream);
    cell_cursor_end(&log->cells);
    free(log);
}

static void get_log_of_target(struct request *request)
{
    const struct job_log_parameters *given = request->parameters;
    struct registry_target target;
    struct log *log;

    if (!control_find_target(request, given->target, &target) ||
        !access_demand(request, target.group, "this shows what workers wrote"))
        return;
    log = request_allocate(request, sizeof(*log));
    if (!log)
        return;
    log->stream.parts.write = write_log;
    log->stream.parts.free = free_log;
    log->stream.follower.fn = on_line;
    log->group = target.group->reference;
    log->whole_group = !target.cell;
    log->only_worker = target.slot != NULL;
    log->index = target.slot ? target.slot->index : 0;
    if (target.cell)
        cell_cursor_at(&log->cells, target.cell);
    else
        cell_cursor_begin(&log->cells, &target.group->cells);
    line_stream_begin(&log->stream, request, given->follow);
}

static void get_log(struct request *request)
{
    const struct job_log_parameters *given = request->parameters;

    if (!given->target == !given->job)
        (void)request_refuse(request, "target", "either this or job");
    else if (given->job)
        control_job_log(request);
    else
        get_log_of_target(request);
}

static const struct varlink_parameter log_table[] = {
    VARLINK_ROW("target", STRING, job_log_parameters, target),
    VARLINK_ROW("job", STRING, job_log_parameters, job),
    VARLINK_ROW("follow", BOOL, job_log_parameters, follow),
    {0},
};

const struct request_method control_log_methods[] = {
    {"GetLog", get_log, log_table, .changes = false},
    {0},
};
