/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files of the verb top. */

#include "shared/base/clock.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct invocation;
struct terminal;

/* What top knows of the supervisor. Survives the loss of the connection. */
struct top_source {
    json_t *info;       /* the last reply of GetInfo; NULL = none so far */
    json_t *brief;      /* groups without cells and workers; NULL = none so far */
    json_t *before;     /* the ones before these, of the same supervisor; NULL = none */
    usec_t at;          /* when the last ones came, monotonic */
    usec_t elapsed;     /* between the two; 0 = not known */
    json_t *status;     /* open groups with their cells and workers; NULL = none */
    json_t *deaths;     /* the reply of ListDeaths, newest first; NULL = none */
    char problem[1024]; /* why the last call failed; "" = it did not */
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

/* Chooses and sorts the rows that are shown. */
struct top_choice {
    json_t *open; /* its keys are the addresses of open groups and cells; owned by the caller */
    enum top_sort sort;
    char filter[64]; /* part of an address; "" = all */
};

#define TOP_ADDRESS_MAX 256

/* A negative number is not known, or has no meaning here. */
struct top_row {
    unsigned depth;
    bool open, may_open;
    char address[TOP_ADDRESS_MAX]; /* "group", "group/key", "group/key/0" */
    const char *state;             /* borrowed from the source, as the next */
    const json_t *object;          /* Group, Cell, Worker */
    int64_t up, size;              /* workers */
    int64_t queued, running, deaths;
    int64_t oldest, took, run; /* microseconds */
    double rate;               /* jobs per second */
};

struct top_rows {
    struct top_row *items;
    size_t n, allocated;
};

struct top {
    struct invocation *invocation;
    struct top_source source;
    struct top_rows rows;
    struct top_choice choice;
    usec_t interval;
    bool typing; /* the filter */
    char selected[TOP_ADDRESS_MAX];
    size_t at;    /* of the selected row */
    size_t first; /* of the rows on the screen */
    size_t shown; /* how many of them there is room for */
    bool ends;
};

/* Replaces the rows: groups, and below open ones their cells and workers, sorted and filtered. They
 * borrow from the source until its next refresh. Without memory, some are missing. */
void top_rows_build(struct top_rows *rows, const struct top_source *source,
                    const struct top_choice *choice);
void top_rows_deinit(struct top_rows *rows);

/* ---- lines with marks as in terminal.h ---- */

#define TOP_LINE_MAX 1024

/* Write the titles, or a row: as many columns as fit into `width` (0 = all of them). */
void top_header(char line[TOP_LINE_MAX], unsigned width, enum top_sort sort);
void top_line(char line[TOP_LINE_MAX], unsigned width, const struct top_row *row);
/* Writes the supervisor in two lines. */
void top_summary(char first[TOP_LINE_MAX], char second[TOP_LINE_MAX],
                 const struct top_source *source);
/* Writes a death in a line. */
void top_death(char line[TOP_LINE_MAX], const json_t *death);

/* ---- the screen ---- */

/* The terminal is gone: no key will come. */
#define TOP_KEY_GONE (-2)

/* Takes the whole screen of `terminal`, on standard output. False if that is impossible. */
bool top_screen_open(const struct terminal *terminal);
/* Restores the terminal. */
void top_screen_close(void);
/* Like top_screen_close(), but for a signal handler of a process that ends. */
void top_screen_abandon(void);
/* Draws the whole picture. */
void top_screen_draw(struct top *top);
/* Waits for a key, for at most so many milliseconds. Returns a character, KEY_* or ERR of
 * curses(3), or TOP_KEY_GONE. */
int top_screen_key(int milliseconds);
