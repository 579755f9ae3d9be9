/* SPDX-License-Identifier: MIT */
/*
 * troupe-trace: where the threads of a process are. The supervisor starts it, with the user and the
 * capabilities of a worker:
 *
 *     troupe-trace PID CRASHED CONTEXT PYTHON VERSION
 *     troupe-trace PID CRASHED CONTEXT PYTHON VERSION DURATION     see profile.h
 *     troupe-trace watch keep|drop                                 see watch.h
 *
 * with struct hints as numbers, and three descriptors: a pidfd of the process, an eventfd that it
 * writes once the process may continue or end, and a sealed memfd for struct trace_output. It holds
 * up the process for milliseconds only; then it takes as long as the supervisor permits. For a
 * profile, it writes the eventfd after each sample, and reads from a fourth descriptor, a socket,
 * whether the sample counts.
 *
 * Memory and files of the process are hostile. They are read only after the process that reads them
 * has given up its capabilities and nearly all system calls. The process that traces ends before
 * the first file is opened, so a file system that never answers holds up no worker.
 */

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/protocol/trace.h"
#include "supervisor/trace/look.h"
#include "supervisor/trace/profile.h"
#include "supervisor/trace/unwind.h"
#include "supervisor/trace/watch.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static int parse(char *argv[], size_t n, struct hints *ret, usec_t *ret_duration)
{
    unsigned long long numbers[6] = {0};

    for (size_t i = 0; i < n; i++) {
        char *end;
        numbers[i] = strtoull(argv[i], &end, 10);
        if (*end != '\0')
            return -EINVAL;
    }
    *ret = (struct hints){(pid_t)numbers[0], (pid_t)numbers[1], numbers[2], numbers[3],
                          (uint32_t)numbers[4]};
    *ret_duration = numbers[5];
    return 0;
}

static int trace(const struct hints *hints, struct trace_output *output)
{
    struct target targets[SAMPLE_TARGETS_MAX];
    const int n = targets_open(targets, hints->pid, hints->crashed == 0);
    const int r = n < 0 ? n : look_is_valid() ? look_take(targets, (size_t)n, hints) : -ESRCH;

    (void)eventfd_write(TRACE_FD_RELEASE, 1);
    return r < 0 ? r : unwind_all(targets, (size_t)n, output);
}

int main(int argc, char *argv[])
{
    struct trace_output *output =
        mmap(NULL, sizeof(*output), PROT_READ | PROT_WRITE, MAP_SHARED, TRACE_FD_OUTPUT, 0);
    const bool watches = argc == 3 && strcmp(argv[1], "watch") == 0;
    struct hints hints;
    usec_t duration = 0;
    int r;

    if (output == MAP_FAILED ||
        (!watches &&
         ((argc != 6 && argc != 7) || parse(argv + 1, (size_t)argc - 1, &hints, &duration) < 0))) {
        (void)fprintf(stderr, "troupe-trace is started by trouped.\n");
        return EXIT_FAILURE;
    }
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* workers of this user must not trace it */
    if (watches)
        return watch(output, strcmp(argv[2], "drop") == 0) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    output->size = 0;
    r = duration > 0 ? profile(&hints, duration, output) : trace(&hints, output);
    output->error = r;
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
