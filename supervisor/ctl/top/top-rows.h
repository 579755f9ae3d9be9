/* SPDX-License-Identifier: MIT */
#pragma once

/* The rows of top: groups, and below open ones their cells and workers, sorted and filtered. */

#include "supervisor/ctl/top/top-source.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum top_kind {
    TOP_GROUP,
    TOP_CELL,
    TOP_WORKER,
};

enum top_sort {
    TOP_BY_NAME,
    TOP_BY_QUEUE,
    TOP_BY_AGE,
    TOP_BY_RATE,
    TOP_BY_RUN,
    TOP_BY_DEATHS,
    _TOP_N_SORTS,
};

#define TOP_ADDRESS_MAX 256

/* A negative number is not known, or has no meaning here. */
struct top_row {
    enum top_kind kind;
    unsigned depth;
    bool open, may_open;
    char address[TOP_ADDRESS_MAX]; /* "group", "group/key", "group/key/0" */
    const char *state;             /* borrowed from the source, as the next */
    const json_t *object;          /* GroupMetrics, Cell, Worker */
    int64_t up, size;              /* workers */
    int64_t queued, running, deaths;
    int64_t oldest, wait, run; /* microseconds */
    double rate;               /* jobs per second */
};

struct top_rows {
    struct top_row *items;
    size_t n, allocated;
};

/* Chooses and sorts the rows that are shown. */
struct top_choice {
    json_t *open; /* its keys are the addresses of open groups and cells; owned by the caller */
    enum top_sort sort;
    char filter[64]; /* part of an address; "" = all */
};

/* Replaces the rows; they borrow from the source until its next refresh. Without memory, some are
 * missing. */
void top_rows_build(struct top_rows *rows, const struct top_source *source,
                    const struct top_choice *choice);
void top_rows_deinit(struct top_rows *rows);
