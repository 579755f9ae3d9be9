/* SPDX-License-Identifier: MIT */

/* trouped: the main process. It becomes the keeper of the supervisor's program, to which it
 * passes all arguments. */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/keeper/keeper.h"
#include "supervisor/keeper/program.h"

int main(int argc, char **argv)
{
    static struct program program;
    (void)argc;
    (void)standard_open();
    log_init("trouped", LOG_LEVEL_INFO);
    program_init(&program, argv);
    return keeper_run(&program.keeper);
}
