/* SPDX-License-Identifier: MIT */

/* trouped: the main process. It becomes the keeper of the supervisor's program, to which it
 * passes all arguments. */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/keeper/keeper.h"
#include "supervisor/keeper/program.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
