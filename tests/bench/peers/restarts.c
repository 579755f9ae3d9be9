/* SPDX-License-Identifier: MIT */

/*
 * Kills a supervised process again and again, and waits for its successor's stamp:
 *
 *     restarts FIFO PID COUNT PAUSE_MS
 *
 * PID 0: the process whose stamp comes first. PAUSE_MS is how long each lives at least. Prints one
 * JSON object, with the pid of the last one.
 */

#include "tests/bench/load/pause.h"
#include "tests/bench/load/samples.h"
#include "tests/bench/load/stamp.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(int fd, uint64_t *pid, unsigned count, unsigned pause_ms, struct samples *samples)
{
    struct stamp stamp;
    int r = 0;

    if (*pid == 0) {
        r = stamp_read(fd, STAMP_MAIN, &stamp);
        *pid = stamp.pid;
    }
    for (unsigned i = 0; r == 0 && i < count; i++) {
        pause_usec((uint64_t)pause_ms * 1000);
        uint64_t begin = samples_now();
        if (kill((pid_t)*pid, SIGKILL) < 0)
            return -errno;
        r = stamp_read(fd, STAMP_MAIN, &stamp);
        samples_add(samples, begin, stamp.ns);
        *pid = stamp.pid;
    }
    return r;
}

int main(int argc, char **argv)
{
    struct samples samples;

    if (argc != 5)
        return 2;
    uint64_t pid = strtoull(argv[2], NULL, 10);
    unsigned count = (unsigned)strtoul(argv[3], NULL, 10);
    int fd = stamp_open(argv[1]);
    int r = fd < 0 ? fd : samples_init(&samples, count);
    if (r == 0)
        r = run(fd, &pid, count, (unsigned)strtoul(argv[4], NULL, 10), &samples);
    if (r < 0) {
        fprintf(stderr, "restarts: %s\n", strerror(-r));
        return 1;
    }
    printf("{\"pid\": %llu, ", (unsigned long long)pid);
    samples_print(&samples, "");
    printf("}\n");
    samples_deinit(&samples);
    return 0;
}
