/* SPDX-License-Identifier: MIT */

/* trouped: the main process. It becomes the keeper of the supervisor's program, to which it
 * passes all arguments. */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/keeper/keeper.h"
#include <errno.h>
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
    static struct program program = {.run = program_run, .next_fd = -1};
    program.argv = argv;
    (void)standard_open();
    standard_survive_file_limit();
    log_init("trouped", LOG_LEVEL_INFO);
    if (!has_proc())
        return EXIT_FAILURE;
    find_program(&program);
    program.fd = program_open(program.path); /* if it is missing, it fails to run */
    return keeper_run(&program);
}
