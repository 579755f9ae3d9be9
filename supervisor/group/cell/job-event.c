/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/job-event.h"

#include "supervisor/group/group.h"
#include <stdio.h>

void job_event_tell(const struct job *job, const char *type, const char *worker, const char *format,
                    ...)
{
    struct cell *cell = job->cell;
    char id[PROTOCOL_ID_TEXT], text[256], message[CELL_NAME_MAX + PROTOCOL_ID_TEXT + 272];
    va_list arguments;

    job_format_id(job, id);
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    (void)snprintf(message, sizeof(message), "%s job %s %s", cell->name, id, text);
    event_publish(&cell->context->events->job_subscribers,
                  &(struct event){
                      .id = cell->context->events->last_id, /* a cursor stays where it was */
                      .at = loop_realtime(cell->context->loop),
                      .type = type,
                      .group = cell->group->name,
                      .cell = pool_event_name(&cell->pool),
                      .worker = worker,
                      .job = id,
                      .job_state = job_state_to_string(job->state),
                      .attempt = job->attempt,
                      .message = message,
                  });
}
