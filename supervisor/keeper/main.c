/* SPDX-License-Identifier: MIT */

/* trouped: the main process. It becomes the keeper of the supervisor's program, to which it
 * passes all arguments. */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/keeper/keeper.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "trouped-supervisor"

struct program {
    char path[PATH_MAX];
    char **argv;
};

/* Prefers the program beside this one (a build tree) to the installed one. */
static void find_program(struct program *program)
{
    char *slash;
    ssize_t n = readlink("/proc/self/exe", program->path, sizeof(program->path) - sizeof(PROGRAM));
    program->path[n > 0 ? n : 0] = '\0';
    slash = strrchr(program->path, '/');
    if (slash) {
        strcpy(slash + 1, PROGRAM);
        if (access(program->path, X_OK) == 0)
            return;
    }
    strcpy(program->path, TROUPE_LIBEXECDIR "/" PROGRAM);
}

static int keep_open(int fd)
{
    return fd < 0 ? 0 : fcntl(fd, F_SETFD, 0);
}

/* keeper_supervisor_fn; `userdata` is a struct program. */
static int run_program(void *userdata, const struct keeper_ends *ends)
{
    const struct program *program = userdata;
    char text[32];
    (void)snprintf(text, sizeof(text), "%d %d", ends->channel, ends->notify_fd);
    if (keep_open(ends->channel) == 0 && keep_open(ends->notify_fd) == 0 &&
        setenv(KEEPER_VARIABLE, text, 1) == 0)
        (void)execv(program->path, program->argv);
    log_error("%s: %s", program->path, strerror(errno));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static struct program program;
    (void)argc;
    (void)standard_open();
    log_init("trouped", LOG_LEVEL_INFO);
    find_program(&program);
    program.argv = argv;
    return keeper_run(run_program, &program);
}
