/* SPDX-License-Identifier: MIT */
#include "supervisor/event/output-log.h"

#include <stdlib.h>
#include <string.h>

void output_log_init(struct output_log *log)
{
    *log = (struct output_log){0};
    list_init(&log->lines);
}

static void drop_oldest(struct output_log *log)
{
    struct output_line *line = list_first_entry(&log->lines, struct output_line, link);

    log->size -= line->size;
    list_unlink(&line->link);
    free(line);
}

void output_log_deinit(struct output_log *log)
{
    if (!log->lines.next)
        return;
    while (!list_empty(&log->lines))
        drop_oldest(log);
}

void output_log_add(struct output_log *log, const struct output_line *given)
{
    const size_t job_size = strlen(given->job) + 1, text_size = strlen(given->text) + 1;
    const size_t size = sizeof(struct output_line) + job_size + text_size;
    struct output_line *line = size <= OUTPUT_LOG_MAX ? malloc(size) : NULL;

    if (!line)
        return;
    *line = (struct output_line){
        .id = ++log->last_id,
        .at = given->at,
        .level = given->level,
        .size = size,
        .job_at = given->job_at,
        .job = memcpy(line->data, given->job, job_size),
        .text = memcpy(line->data + job_size, given->text, text_size),
    };
    list_push_back(&log->lines, &line->link);
    log->size += size;
    while (log->size > OUTPUT_LOG_MAX)
        drop_oldest(log);
}

static const struct output_line *line_at(const struct output_log *log, const struct list *node)
{
    return node == &log->lines ? NULL : list_entry(node, struct output_line, link);
}

const struct output_line *output_log_after(const struct output_log *log, uint64_t id)
{
    const struct output_line *line = line_at(log, log->lines.next);

    while (line && line->id <= id)
        line = output_log_next(log, line);
    return line;
}

const struct output_line *output_log_next(const struct output_log *log,
                                          const struct output_line *line)
{
    return line_at(log, line->link.next);
}
