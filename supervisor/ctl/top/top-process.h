/* SPDX-License-Identifier: MIT */
#pragma once

/* CPU time and memory of local processes, from /proc: the supervisor is not asked for them. */

#include "shared/base/clock.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct top_process {
    pid_t pid;
    uint64_t ticks;  /* CPU time */
    usec_t at;       /* monotonic: when it was read */
    double cpu;      /* in percent of a processor since the last reading; negative = not known */
    uint64_t memory; /* bytes, resident */
};

/* The last readings. Zeroed = none. */
struct top_processes {
    struct top_process *items; /* sorted by pid */
    size_t n, n_old, allocated;
};

void top_processes_deinit(struct top_processes *processes);
/* Begins another round: forgets processes that were not read in the last one. */
void top_processes_begin(struct top_processes *processes);
/* Reads a process, once in a round. It is not known if `memory` is 0. */
struct top_process top_processes_read(struct top_processes *processes, pid_t pid);
