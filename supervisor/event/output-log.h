/* SPDX-License-Identifier: MIT */
#pragma once

/* The last lines that a group's workers wrote while they had a job, so that a job's output can be
 * read after its worker is gone. At most OUTPUT_LOG_MAX bytes, including the cost of each line in
 * addition to its text; the oldest lines are dropped first. */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_LOG_MAX ((size_t)256 * 1024)

struct output_line {
    struct list link;
    uint64_t id;   /* counts from 1 in its log */
    usec_t at;     /* realtime */
    int level;     /* of syslog(3), 0 to 7 */
    size_t size;   /* that it counts with */
    usec_t job_at; /* realtime: when its job was accepted. Ids are free again after a time */
    const char *job, *text;
    char data[];
};

struct output_log {
    struct list lines; /* struct output_line.link, oldest first */
    size_t size;
    uint64_t last_id;
};

void output_log_init(struct output_log *log);
/* Harmless on a zeroed struct. */
void output_log_deinit(struct output_log *log);

/* Keeps a copy of the line, of which `at`, `level`, `job_at`, `job` and `text` are set. Out of
 * memory, or a line larger than the log, keeps nothing. */
void output_log_add(struct output_log *log, const struct output_line *line);

/* Returns the first line with a higher id, or the one behind `line`; NULL = none. Valid until the
 * next line is added. */
const struct output_line *output_log_after(const struct output_log *log, uint64_t id);
const struct output_line *output_log_next(const struct output_log *log,
                                          const struct output_line *line);
