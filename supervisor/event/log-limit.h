/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Keeps floods out of the log. Of the lines of one kind about one subject, as a rule a group, the
 * first LOG_LIMIT_BURST in LOG_LIMIT_WINDOW are written. The others are counted, and one line sums
 * them up at the end of the window, with the text of the latest. While the flood goes on, each
 * further window is one such line.
 *
 * A timer is armed only while there is something to sum up.
 */

#include "shared/base/log.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LIMIT_BURST  10u
#define LOG_LIMIT_WINDOW (10 * USEC_PER_SEC)
/* Pairs of subject and kind that are followed at a time. */
#define LOG_LIMIT_ENTRIES 1024u

struct log_limit;

struct log_limits {
    struct loop *loop;
    usec_t (*now)(const struct loop *loop); /* loop_now(); tests have their own */
    struct log_limit **entries;             /* LOG_LIMIT_ENTRIES, in sets by key; NULL = none yet */
    struct list pending;                    /* those with something to sum up */
    struct timer timer;
};

/* A line as it is to be written. All borrowed. */
struct log_line {
    enum log_level level;
    const char *subject; /* a group's name; NULL = none */
    const char *kind;    /* static: the same pointer is the same kind */
    uint64_t id;         /* tells lines of a kind apart that are limited each by itself; 0 = none */
    const char *text;
};

/* 0 or -ENOMEM. `loop` outlives it. */
int log_limits_init(struct log_limits *limits, struct loop *loop);
/* Also sums up what is still to be summed up. Harmless on a zeroed struct. */
void log_limits_deinit(struct log_limits *limits);

/*
 * Whether the caller writes this line; else it is counted. Always true for debug lines, without
 * memory, and where `limits` is NULL or zeroed.
 */
bool log_limit_admits(struct log_limits *limits, const struct log_line *line);
