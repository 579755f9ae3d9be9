/* SPDX-License-Identifier: MIT */

/* trouped: the main process. It becomes the keeper of the supervisor's program, to which it
 * passes all arguments. */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/keeper/keeper.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the program ---- */

/* Prefers the program beside this one to the installed one. */
static void find_program(struct program *program)
{
    char *slash;
    ssize_t n =
        readlink("/proc/self/exe", program->path, sizeof(program->path) - sizeof(PROGRAM_NAME));
    program->path[n > 0 ? n : 0] = '\0';
    slash = strrchr(program->path, '/');
    if (slash) {
        strcpy(slash + 1, PROGRAM_NAME);
        if (access(program->path, X_OK) == 0)
            return;
    }
    strcpy(program->path, TROUPE_LIBEXECDIR "/" PROGRAM_NAME);
}

/* Returns a descriptor, or -errno, logged. */
static int open_program(const struct program *program)
{
    int fd = open(program->path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    fd = -errno;
    log_error("%s: %s", program->path, strerror(-fd));
    return fd;
}

static int renew(struct keeper_program *keeper)
{
    struct program *program = (struct program *)keeper;
    const int fd = open_program(program);
    if (fd < 0)
        return fd;
    program->old_fd = program->fd;
    program->fd = fd;
    return 0;
}

static void settle(struct keeper_program *keeper, bool failed)
{
    struct program *program = (struct program *)keeper;
    if (failed)
        SWAP(program->fd, program->old_fd);
    program->old_fd = close_fd(program->old_fd);
}

/* If it is missing, it fails to run. */
static void program_init(struct program *program, char **argv)
{
    *program = (struct program){.keeper = {.run = program_run, .renew = renew, .settle = settle},
                                .argv = argv,
                                .old_fd = -1};
    find_program(program);
    program->fd = open_program(program);
}

/* ---- start ---- */

/* Without /proc, later steps would fail with errors that name other files. */
static bool has_proc(void)
{
    if (access("/proc/self/stat", R_OK) == 0)
        return true;
    log_error("/proc/self/stat: %s; trouped needs /proc: mount it (mount -t proc proc /proc)",
              strerror(errno));
    return false;
}

int main(int argc, char **argv)
{
    static struct program program;
    (void)argc;
    (void)standard_open();
    standard_survive_file_limit();
    log_init("trouped", LOG_LEVEL_INFO);
    if (!has_proc())
        return EXIT_FAILURE;
    program_init(&program, argv);
    return keeper_run(&program.keeper);
}
