/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a worker writes to its standard output and error: one pipe, read by the supervisor, a
 * bounded piece per turn. The last CAPTURE_TAIL_MAX bytes are kept for the death report; complete
 * lines go to a callback, at most CAPTURE_LINES_PER_SEC of them: the rest is counted and summed up
 * in one line.
 *
 * A worker that never writes costs no buffer. A worker that writes faster than it is read is slowed
 * down by its own full pipe, which harms nobody else.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_TAIL_MAX      4096
#define CAPTURE_LINE_MAX      2048 /* longer lines are delivered in pieces */
#define CAPTURE_LINES_PER_SEC 200

/*
 * `line`: NUL-terminated, no newline, control characters and bytes that are not UTF-8 written as
 * \xNN; valid during the call; empty lines are left out. May call capture_deinit(), but not free
 * the struct.
 */
typedef void (*capture_line_fn)(void *userdata, const char *line);

struct capture {
    struct loop *loop;
    struct loop_watch watch;
    int fd;      /* read end; -1 = closed */
    char *tail;  /* circular, CAPTURE_TAIL_MAX; NULL until something was written */
    size_t end;  /* bytes written into it in all; position = end % CAPTURE_TAIL_MAX */
    size_t line; /* value of `end` where the incomplete line began */
    usec_t window_start;
    unsigned n_window;     /* lines delivered within this second */
    uint64_t n_suppressed; /* lines not delivered and not yet reported */
    struct timer summary;
    capture_line_fn fn;
    void *userdata;
};

/* clang-format off */
#define CAPTURE_NULL {.fd = -1, .watch = LOOP_WATCH_NULL}
/* clang-format on */

/* An empty capture. `loop` may be NULL if only capture_feed() is used. */
void capture_init(struct capture *capture, struct loop *loop, capture_line_fn fn, void *userdata);

/*
 * Makes the pipe for one life of the worker and watches it; what an earlier life left is forgotten.
 * `*ret_write_fd` (close-on-exec) is the caller's: hand it to spawn() as 1 and 2, then close it.
 * 0 or -errno.
 */
int capture_open(struct capture *capture, int *ret_write_fd);

/*
 * After the worker's death: reads what is still in the pipe (bounded: a grandchild may hold the
 * other end), delivers the last line even if it is incomplete and the summary, and closes. The tail
 * stays.
 */
void capture_finish(struct capture *capture);

/* Frees everything. Harmless on CAPTURE_NULL, and from the callback. */
void capture_deinit(struct capture *capture);

/* Takes bytes in as if they had been read. 0 or -ENOMEM (then they are lost). */
int capture_feed(struct capture *capture, const char *data, size_t size, usec_t now);

/*
 * How many bytes have been written in this life, those that are still in the pipe included: a mark
 * for capture_tail(). Costs a system call once something has been written, nothing before.
 */
size_t capture_position(const struct capture *capture);

/* Reads what is in the pipe now (bounded), as if the loop had. */
void capture_catch_up(struct capture *capture);

/*
 * Copies what was written from position `since` on (0 = all), at most the last CAPTURE_TAIL_MAX and
 * `size` - 1 bytes of it, beginning with a whole character, and a NUL. Raw, and may contain NULs:
 * escape before showing. Returns its length.
 */
size_t capture_tail(const struct capture *capture, size_t since, char *buffer, size_t size);

#define CAPTURE_ESCAPED_MAX(n) ((n)*4 + 1)

/*
 * Writes `data` with everything but printable UTF-8 and tab as \xNN into `buffer`, NUL-terminated,
 * cut if need be. CAPTURE_ESCAPED_MAX(n) bytes always suffice. Returns the length.
 */
size_t capture_escape(char *buffer, size_t buffer_size, const char *data, size_t size);
