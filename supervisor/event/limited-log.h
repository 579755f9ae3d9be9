/* SPDX-License-Identifier: MIT */
#pragma once

/* A rate-limited log, for lines that clients and workers can cause. The first
 * LIMITED_LOG_BURST lines of a kind and subject (usually a group) in LIMITED_LOG_WINDOW are
 * written. The rest is counted, and one line at the end of the window sums it up, with the latest
 * text. While the flood continues, each window gets one line.
 *
 * A timer is armed only while a summary is due. */

#include "shared/base/log.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITED_LOG_BURST  10u
#define LIMITED_LOG_WINDOW (10 * USEC_PER_SEC)
/* Bounds the pairs of subject and kind that are counted at a time. */
#define LIMITED_LOG_ENTRIES 1024u

struct line_counter;

struct limited_log {
    struct loop *loop;
    usec_t (*now)(const struct loop *loop); /* loop_now(), except in tests */
    struct line_counter **entries;          /* in sets by key; NULL = none */
    struct list pending;                    /* entries that need a summary */
    struct timer timer;
};

/* A line to write. All borrowed. */
struct limited_line {
    enum log_level level;
    const char *subject; /* a group's name; NULL = none */
    const char *kind;    /* static: compared by pointer */
    uint64_t id;         /* lines of a kind with different ids are limited separately */
    const char *text;
};

/* `loop` must outlive the log. Returns 0 or -ENOMEM. */
int limited_log_init(struct limited_log *log, struct loop *loop);
/* Writes pending summaries. Harmless on a zeroed struct. */
void limited_log_deinit(struct limited_log *log);

/* Returns whether to write this line; if not, it is counted. Always true for debug lines, when
 * out of memory, and if `log` is NULL or zeroed. */
bool limited_log_admits(struct limited_log *log, const struct limited_line *line);

/* Returns the id of lines with this literal format about `name` (NULL = none). */
uint64_t limited_log_id(const char *format, const char *name);

/* Writes or counts a line. `group` (NULL = none) is the subject, which the text does not name.
 * Each literal `format` is limited separately. */
void limited_log_write(struct limited_log *log, const char *group, enum log_level level,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
