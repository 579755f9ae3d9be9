/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lines of input that `map` keeps in memory, each from when it is read until its result has
 * been written, in order. Lines leave only at the front, so none is lost or doubled however often a
 * job is refused. The window reads, sends and writes nothing itself. While the queue of the group
 * is full, the supervisor keeps jobs waiting; it refuses those beyond the share of a submitter.
 */

#include "shared/base/clock.h"
#include "worker/troupe.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum window_state {
    WINDOW_FREE,
    WINDOW_READY,     /* to be submitted, perhaps again */
    WINDOW_SUBMITTED, /* in flight */
    WINDOW_DOUBTFUL,  /* the connection was lost: to be waited for by id */
    WINDOW_DONE,
};

struct window_line {
    enum window_state state;
    uint64_t number; /* 0 for the first line of the input; also the cookie */
    char *input;     /* owned */
    size_t size, allocated;
    char id[TROUPE_ID_SIZE];     /* of the job; set by the caller */
    bool awaited;                /* in flight by id only: the job itself was submitted before */
    bool repeated;               /* the supervisor did not know it, so it is submitted again */
    struct troupe_result result; /* owned; valid when done */
    char *copy;                  /* owned: holds the result after window_detach(); else NULL */
};

struct window {
    struct window_line *lines; /* line n is at n % size */
    size_t size;
    uint64_t first, next; /* the numbers of the oldest line and of the next line to be read */
    uint64_t search;      /* no ready line before this */
    uint64_t doubt;       /* no doubtful line before this */
    size_t n_submitted, n_doubtful;
    bool patient; /* set by the caller: a job that is refused for lack of room is sent again */
    bool durable; /* set by the caller: the group keeps accepted jobs when it stops */
    /* Set by the caller: a job that the supervisor does not know was not accepted. */
    bool repeats;
    usec_t hold; /* monotonic: nothing is submitted before this time */
};

/* Returns 0 or -ENOMEM. */
int window_init(struct window *window, size_t size);
/* Also releases the results. Call it before the client is freed. */
void window_deinit(struct window *window);

/* Copies the results that are not written yet, so that the client can be freed. 0 or -ENOMEM. */
int window_detach(struct window *window);

bool window_full(const struct window *window);
bool window_empty(const struct window *window);

/* Adds a copy of a line, ready. The window must not be full. Returns 0 or -ENOMEM. */
int window_add(struct window *window, const char *input, size_t size);

/* Returns the first ready line if it may be submitted now, otherwise NULL. */
struct window_line *window_ready(struct window *window, usec_t now);

/* Records that the line was submitted. */
void window_submitted(struct window *window, struct window_line *line);

enum {
    _WINDOW_E_SUCCESS,
    WINDOW_E_REFUSED,  /* the job was not accepted, but may be later: the line is ready again */
    WINDOW_E_DOUBTFUL, /* the connection was lost: the line is doubtful */
    WINDOW_E_STRANGE,  /* no job with this cookie is in flight */
};

/*
 * Records the result of a line. Takes ownership of the result if it returns 0, not with
 * WINDOW_E_*. The error of a line that may have been accepted before becomes -ECONNRESET: what
 * became of its job is not known.
 */
int window_ended(struct window *window, const struct troupe_result *result, usec_t now);

/* Returns a doubtful line or NULL; during a hold, do not ask. window_awaited() records that it is
 * waited for by id. */
struct window_line *window_doubtful(struct window *window);
void window_awaited(struct window *window, struct window_line *line);

/* Ends all doubtful lines with the error -ECONNRESET. */
void window_lose(struct window *window);

/* Returns the line at the front if it is done, otherwise NULL; window_drop() removes it. */
const struct window_line *window_front(const struct window *window);
void window_drop(struct window *window);

/* Drops the ready lines and returns their number. Lines that are in flight or done stay. */
size_t window_give_up(struct window *window);
