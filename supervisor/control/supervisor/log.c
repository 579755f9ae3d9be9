/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor.GetLog: the last output of workers, and lines as they come. What a job
 * wrote: see job-log.c. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/supervisor/job-log.h"
#include "supervisor/control/target.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/capture.h"
#include "supervisor/varlink/request-parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a raw line of the tail, or an escaped one as followers get it. */
#define LINE_MAX_SIZE CAPTURE_ESCAPED_MAX(CAPTURE_LINE_MAX)
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

struct log_parameters {
    const char *target, *job; /* either */
    bool follow;
};

struct log {
    struct request_parts parts;
    struct event_subscriber follower;
    uint64_t group; /* its reference */
    bool whole_group;
    unsigned index; /* of the only worker */
    bool only_worker;
    struct cell_cursor cells;
    const struct cell *cell; /* the cursor's, valid only while they are equal */
    size_t worker;           /* cursor */
};

#define log_of(pointer) list_entry(pointer, struct log, parts)

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

static bool write_log(struct request_parts *parts)
{
    struct log *log = log_of(parts);
    const struct group *group = registry_get(parts->request->context->registry, log->group);
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
    struct log *log = list_entry(follower, struct log, follower);
    struct request *request = log->parts.request;
    const struct log_parameters *given = request->parameters;
    struct reply *reply;

    if (!report_is_below(event->worker, given->target))
        return;
    /* A reload may have changed the client's permissions, or the group behind the name. */
    if (!access_group(request, registry_get(request->context->registry, log->group)))
        return;
    reply = request_begin(request);
    reply_array(reply, "lines");
    report_line(reply, log->only_worker ? NULL : event->worker, event->message,
                strlen(event->message));
    reply_end_array(reply);
    request_end_more(request);
}

static void stay_for_lines(struct request_parts *parts)
{
    event_subscribe(&parts->request->context->events->line_subscribers, &log_of(parts)->follower);
}

static void free_log(struct request_parts *parts)
{
    event_unsubscribe(&log_of(parts)->follower);
    cell_cursor_end(&log_of(parts)->cells);
    free(log_of(parts));
}

static void get_log_of_target(struct request *request)
{
    const struct log_parameters *given = request->parameters;
    struct registry_target target;
    struct log *log;

    if (!control_find_target(request, given->target, &target) ||
        !access_demand(request, target.group, "this shows what workers wrote"))
        return;
    log = request_allocate(request, sizeof(*log));
    if (!log)
        return;
    log->parts = (struct request_parts){.array = "lines",
                                        .may_continue = true,
                                        .write = write_log,
                                        .stay = given->follow ? stay_for_lines : NULL,
                                        .free = free_log};
    list_init(&log->follower.link);
    log->follower.fn = on_line;
    log->group = target.group->reference;
    log->whole_group = !target.cell;
    log->only_worker = target.slot != NULL;
    log->index = target.slot ? target.slot->index : 0;
    if (target.cell)
        cell_cursor_at(&log->cells, target.cell);
    else
        cell_cursor_begin(&log->cells, &target.group->cells);
    request_in_parts(request, &log->parts);
}

static void get_log(struct request *request)
{
    const struct log_parameters *given = request->parameters;

    if (!given->target == !given->job)
        (void)request_refuse(request, "target", "either this or job");
    else if (given->job)
        control_job_log(request, given->job, given->follow);
    else
        get_log_of_target(request);
}

static const struct varlink_parameter log_table[] = {
    VARLINK_ROW("target", STRING, log_parameters, target),
    VARLINK_ROW("job", STRING, log_parameters, job),
    VARLINK_ROW("follow", BOOL, log_parameters, follow),
    {0},
};

const struct request_method control_log_methods[] = {
    {"GetLog", get_log, log_table, .changes = false},
    {0},
};
