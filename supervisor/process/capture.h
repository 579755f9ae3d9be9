/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Captures a worker's standard output and error: one stream socket, read in bounded pieces, at most
 * once per turn. It is not a pipe: splice(2) lets a worker hold a pipe's lock, and then reading,
 * FIONREAD and the last close of that pipe wait, which no signal interrupts. The last
 * CAPTURE_TAIL_MAX bytes are kept for the death report. Complete lines go to a callback, at most as
 * many as capture_set_limit() allows; one line sums up the rest.
 *
 * A worker that writes faster than the supervisor reads blocks on its own full socket. The output
 * is kept in memory that the caller provides. If that memory outlives the supervisor, the next one
 * continues where this one stopped: it loses no line, and repeats at most the one that was being
 * delivered.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_TAIL_MAX 4096
#define CAPTURE_LINE_MAX 2048 /* longer lines are delivered in pieces */

/* The default limit. */
#define CAPTURE_BURST    200
#define CAPTURE_INTERVAL USEC_PER_SEC
/* Without a limit: the lines of one turn of the loop. A full socket can hold thousands of them. */
#define CAPTURE_TURN_LINES 1000

/*
 * `line` is NUL-terminated, without newline; control characters and bytes that are not UTF-8 are
 * written as \xNN. It is valid during the call. Empty lines are skipped. The callback may call
 * capture_deinit(), but must not free the struct. If a worker sends descriptors with its output,
 * the socket is no longer read, and one line says so.
 */
typedef void (*capture_line_fn)(void *userdata, const char *line);

/* The loop has read all output: no process can write any more. Like for a line. */
typedef void (*capture_end_fn)(void *userdata);

/* Valid when zeroed. Partner of the stores: capture_adopt() in the next supervisor. */
struct capture_memory {
    _Atomic uint64_t end;  /* see struct capture */
    _Atomic uint64_t line; /* see struct capture */
    /* Where the current read ends: only while one is in progress is this above `end`. */
    _Atomic uint64_t reading_to;
    char tail[CAPTURE_TAIL_MAX];
};

struct capture {
    struct loop *loop;
    struct loop_watch watch;
    struct task reading; /* queued when other workers have used up the time of this turn */
    int fd;              /* our end; -1 = closed */
    bool refuses;        /* the kernel refuses messages with descriptors to it (scm_refuses()) */
    struct capture_memory *memory; /* borrowed; NULL = output is discarded */
    size_t end;      /* bytes read in total; the position in the circular tail is the remainder */
    size_t line;     /* `end` at the beginning of the first line that is not delivered */
    usec_t interval; /* of the limit */
    unsigned burst;
    usec_t window_start;
    unsigned n_window;     /* lines delivered within this interval */
    uint64_t owner;        /* of the other end, as in taker.h; set by the capture's owner */
    uint64_t n_suppressed; /* lines not delivered and not yet reported */
    bool is_ours;          /* the line being delivered is about the output, not part of it */
    struct timer summary;
    capture_line_fn fn;
    capture_end_fn on_end; /* set by the owner; NULL = none */
    void *userdata;
};

/* clang-format off */
#define CAPTURE_NULL {.fd = -1, .watch = LOOP_WATCH_NULL}
/* clang-format on */

/* Forgets the output in `memory`, which an earlier capture may have used. */
void capture_forget(struct capture_memory *memory);

/* Initializes an empty capture, which reads within the time that `work` has in a turn. The output
 * is kept in `memory`, which must outlive the capture; NULL = nowhere. */
void capture_init(struct capture *capture, struct work_queue *work, struct capture_memory *memory,
                  capture_line_fn fn, void *userdata);

/* Delivers at most `burst` lines within `interval`; 0 of either = CAPTURE_TURN_LINES in a turn. */
void capture_set_limit(struct capture *capture, usec_t interval, unsigned burst);

/*
 * Creates and watches the socket for a new process, and forgets the output of the last.
 * `*ret_write_fd` (close-on-exec) is the caller's: it becomes 1 and 2 of the process. Returns 0 or
 * -errno.
 */
int capture_open(struct capture *capture, int *ret_write_fd);

/*
 * Continues the last supervisor's capture: takes over our end, and delivers the output in the
 * memory that was not delivered yet. Takes over `fd` only on success. Returns 0 or -errno.
 */
int capture_adopt(struct capture *capture, int fd);

/*
 * Ends the capture after the worker's death: reads the rest of the output (bounded, since a
 * descendant may hold the other end), delivers the last line and the summary, and closes. The tail
 * stays.
 */
void capture_finish(struct capture *capture);

/* Idempotent; allowed on CAPTURE_NULL and in the callback. */
void capture_deinit(struct capture *capture);

/* Whether the process is known to have written something, read or not. No system call. */
bool capture_has_output(const struct capture *capture);

/* Returns how many bytes the process has written, unread ones included: a mark for
 * capture_tail(). Costs a system call after the first output. */
size_t capture_position(const struct capture *capture);

/* Reads the socket now (bounded), without waiting for the loop. */
void capture_catch_up(struct capture *capture);

/* Like capture_catch_up(), but also delivers an incomplete last line as a line: later output
 * belongs to something else. Costs a system call. */
void capture_cut(struct capture *capture);

/*
 * Copies the output since position `since` (0 = all) and a NUL: at most the last CAPTURE_TAIL_MAX
 * and `size` - 1 bytes, from the start of a character. Raw, possibly with NULs: escape before
 * showing. Returns the length.
 */
size_t capture_tail(const struct capture *capture, size_t since, char *buffer, size_t size);
