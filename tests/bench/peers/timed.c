/* SPDX-License-Identifier: MIT */

/*
 * How long a program takes as a whole process, its output thrown away:
 *
 *     timed COUNT PROGRAM [ARGUMENT...]
 *
 * Prints one JSON object.
 */

#include "tests/bench/load/samples.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    posix_spawn_file_actions_t actions;
    struct samples samples;
    unsigned count = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;

    if (count == 0 || samples_init(&samples, count) < 0)
        return 2;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    for (unsigned i = 0; i < count; i++) {
        uint64_t begin = samples_now();
        int status = 0;
        pid_t pid;
        int r = posix_spawnp(&pid, argv[2], &actions, NULL, argv + 2, environ);

        if (r != 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
            fprintf(stderr, "timed: %s: %s, status %d\n", argv[2], strerror(r), status);
            return 1;
        }
        samples_add(&samples, begin, samples_now());
    }
    printf("{");
    samples_print(&samples, "");
    printf("}\n");
    samples_deinit(&samples);
    return 0;
}
