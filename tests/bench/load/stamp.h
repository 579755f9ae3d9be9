/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Stamps: processes that are started, and may be killed at any moment, tell of themselves through a
 * FIFO, a record each. Writes of this size are atomic.
 */

#include <stdint.h>

enum stamp_kind {
    STAMP_MAIN = 1, /* its main() has begun */
    STAMP_BUSY = 2, /* it has a job in hand, and has touched its memory */
    STAMP_JOB = 3,  /* not by the FIFO: a job's result, when it began */
};

struct stamp {
    uint64_t kind;
    uint64_t pid;
    uint64_t ns; /* samples_now() when it happened */
};

/* The name of the environment variable with the FIFO's path. */
#define STAMP_VARIABLE "BENCH_STAMPS"

/* Of this process, now; nothing happens where there is no FIFO. */
void stamp_write(enum stamp_kind kind);

/* Opens the FIFO so that it never ends. A descriptor or -errno. */
int stamp_open(const char *path);

/* Waits for the next stamp of that kind; others are dropped. 0 or -errno; -ETIMEDOUT after 30 s. */
int stamp_read(int fd, enum stamp_kind kind, struct stamp *ret);
