/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What `map` has in memory: a window over the lines of its input, each from being read until its
 * result has been written, in order. A line is in one of four states and leaves only at the front,
 * so nothing is lost or doubled however often a job is refused. Pure: reads, sends and writes
 * nothing.
 *
 * It also says how many jobs to have under way: the whole window, until the supervisor says that
 * the queue is full; then no more than were accepted, and one more each time that so many have
 * succeeded.
 */

#include "shared/base/clock.h"
#include "worker/troupe.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum window_state {
    WINDOW_FREE,
    WINDOW_READY,     /* to be submitted (again) */
    WINDOW_SUBMITTED, /* its end will come */
    WINDOW_DONE,
};

struct window_line {
    enum window_state state;
    uint64_t number; /* 0 for the first line of the input; also the cookie */
    char *input;     /* owned */
    size_t size, allocated;
    struct troupe_result result; /* once done: to be released */
};

struct window {
    struct window_line *lines; /* line n is at n % size */
    size_t size;
    uint64_t first, next; /* numbers: the oldest line in the window, the next to be read */
    uint64_t search;      /* no ready line before this */
    size_t n_submitted;
    size_t limit;    /* of n_submitted */
    size_t credit;   /* successes towards a larger limit */
    usec_t hold;     /* monotonic: nothing is submitted before, the queue being full */
    usec_t hold_for; /* how long the last hold was */
};

/* 0 or -ENOMEM. */
int window_init(struct window *window, size_t size);
/* Releases results too: before the client is freed. */
void window_deinit(struct window *window);

bool window_full(const struct window *window);
bool window_empty(const struct window *window);

/* Copies a line in, ready. The window must not be full. 0 or -ENOMEM. */
int window_add(struct window *window, const char *input, size_t size);

/* The first ready line, if one may be submitted now; else NULL. */
struct window_line *window_ready(struct window *window, usec_t now);

/* It was submitted. */
void window_submitted(struct window *window, struct window_line *line);

enum {
    _WINDOW_E_SUCCESS,
    WINDOW_E_REFUSED, /* the queue is full: the line is ready again */
    WINDOW_E_STRANGE, /* no job of that cookie is under way */
};

/*
 * A result came. 0: it belongs to the window now. WINDOW_E_REFUSED, WINDOW_E_STRANGE: it is still
 * the caller's to release.
 */
int window_ended(struct window *window, const struct troupe_result *result, usec_t now);

/* The line at the front if it is done, else NULL; window_drop() then lets go of it. */
const struct window_line *window_front(const struct window *window);
void window_drop(struct window *window);

/* Gives up the lines that are not under way; the done ones before the first of them stay. Returns
 * their number. */
size_t window_give_up(struct window *window);
