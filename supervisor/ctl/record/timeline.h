/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Writes a timeline in the Trace Event Format, JSON that Perfetto and chrome://tracing open: a
 * process for each group, a row for each worker, bars, marks and counters.
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 *
 * A bar is written when it ends. In memory are the names of groups and workers, and the open bars,
 * at most TIMELINE_ROWS_MAX of them. All times are realtime.
 */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define TIMELINE_ROWS_MAX 65536

struct timeline {
    FILE *file; /* borrowed */
    usec_t begin;
    json_t *processes, *rows; /* numbers by name */
    json_t *open;             /* bars by key, with group, worker (a row), name, type, at, args */
    json_t *busy;             /* keys of open bars, by row */
    uint64_t n_left_out;      /* bars and marks for which there was no row */
    uint64_t n_events, n_bars;
    bool failed; /* out of memory; ferror() tells of errors of the file */
};

/* Whose bar or mark it is. `worker` NULL = the group's, `group` NULL = the supervisor's. */
struct timeline_place {
    const char *group, *worker;
};

/* Bars are cut at `begin`, and marks before it are left out. */
void timeline_init(struct timeline *timeline, FILE *file, usec_t begin);
void timeline_deinit(struct timeline *timeline);

/* Shows a row, even if nothing happens there. */
void timeline_add_row(struct timeline *timeline, const struct timeline_place *place);

/* Opens a bar. Bars of one worker that overlap get rows of their own. Takes ownership of `args`.
 * Has no effect if there is a bar with this key. */
void timeline_open(struct timeline *timeline, const struct timeline_place *place, const char *key,
                   const char *category, usec_t at, json_t *args);
/* Ends that bar, if there is one, and adds `args`, of which it takes ownership. */
void timeline_close(struct timeline *timeline, const char *key, usec_t at, json_t *args);
/* Takes ownership of `args`. */
void timeline_mark(struct timeline *timeline, const struct timeline_place *place, const char *name,
                   const char *category, usec_t at, json_t *args);
/* Takes ownership of `values`: a number for each curve. */
void timeline_count(struct timeline *timeline, const char *group, const char *name, usec_t at,
                    json_t *values);

/* Cuts the open bars, except those whose keys are names in the object `keep`; NULL = none. */
void timeline_cut(struct timeline *timeline, usec_t at, const char *why, const json_t *keep);
/* Ends the text. Takes ownership of `about`, texts and numbers about all of it. Returns 0, or
 * -errno if it could not be written. */
int timeline_finish(struct timeline *timeline, json_t *about);
