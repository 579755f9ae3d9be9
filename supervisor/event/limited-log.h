/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A rate-limited log, for lines that clients and workers can cause at will. Of the lines of one
 * kind about one subject, as a rule a group, the first LIMITED_LOG_BURST in LIMITED_LOG_WINDOW are
 * written. The others are counted, and one line at the end of the window sums them up, with the
 * text of the latest. While the flood goes on, each further window is one such line.
 *
 * A timer is armed only while there is something to sum up.
 */

#include "shared/base/log.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMITED_LOG_BURST  10u
#define LIMITED_LOG_WINDOW (10 * USEC_PER_SEC)
/* Pairs of subject and kind that are followed at a time. */
#define LIMITED_LOG_ENTRIES 1024u

struct line_counter;

struct limited_log {
    struct loop *loop;
    usec_t (*now)(const struct loop *loop); /* loop_now(), except in tests */
    struct line_counter **entries;          /* LIMITED_LOG_ENTRIES, in sets by key; NULL = none */
    struct list pending;                    /* those with something to sum up */
    struct timer timer;
};

/* A line that somebody wants to write. All borrowed. */
struct limited_line {
    enum log_level level;
    const char *subject; /* a group's name; NULL = none */
    const char *kind;    /* static: the same pointer is the same kind */
    uint64_t id;         /* lines of a kind with different ids are limited separately */
    const char *text;
};

/* 0 or -ENOMEM. `loop` outlives it. */
int limited_log_init(struct limited_log *log, struct loop *loop);
/* Sums up what is still pending. Harmless on a zeroed struct. */
void limited_log_deinit(struct limited_log *log);

/*
 * Whether the caller should write this line; if not, it is counted. Always true for debug lines,
 * when out of memory, and where `log` is NULL or zeroed.
 */
bool limited_log_admits(struct limited_log *log, const struct limited_line *line);

/* The id of lines with this format, a literal, about `name` (NULL = none). */
uint64_t limited_log_id(const char *format, const char *name);

/*
 * Writes a line, or counts it. `group` (NULL = none) is the subject; the text does not name it by
 * itself. Each `format`, a literal, is limited by itself.
 */
void limited_log_write(struct limited_log *log, const char *group, enum log_level level,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
