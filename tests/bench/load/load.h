/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The same work for every system: jobs of some bytes, an echo worker in another process, the result
 * back at the submitter, which checks it.
 *
 *     PROGRAM ADDRESS work DEPTH RESULT                 for ever
 *     PROGRAM ADDRESS round-trip COUNT BYTES RESULT     one at a time, each timed
 *     PROGRAM ADDRESS window COUNT BYTES RESULT WINDOW  so many in flight
 *
 * The last two print one JSON object. A result is the first RESULT bytes of the payload, or all of
 * a shorter one; the first eight are the job's number.
 */

#include <stddef.h>
#include <stdint.h>

/* How a system is talked to. All return 0 or -errno. */
struct load_system {
    const char *name;
    /*
     * As submitter. At most `window` jobs will be in flight. `*ret` is handed to the others; it
     * ends with the process.
     */
    int (*open)(const char *address, unsigned window, void **ret);
    /* May keep it until flush() or a next() that waits. -EAGAIN: take some results first. */
    int (*submit)(void *self, const void *data, size_t size);
    int (*flush)(void *self);
    /* Copies the next result, which must have `size` bytes. -EAGAIN: none there, and not to wait.
     */
    int (*next)(void *self, int wait, void *data, size_t size);
    /*
     * Works for ever, with up to `depth` jobs in hand; calls load_ready() when a job would find it.
     * NULL: the system starts its workers.
     */
    int (*work)(const char *address, unsigned depth, size_t result_max);
};

/* Says so on standard output, to whoever started this worker. */
void load_ready(void);

/* The whole program; returns its exit status. */
int load_main(int argc, char **argv, const struct load_system *system);
