/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's program, trouped-supervisor: beside this one (a build tree) or installed. It is
 * kept open, so that a supervisor that crashes is started again from the same file, even if another
 * version has been installed meanwhile; an upgrade opens it again. Without privileges, each
 * supervisor executes a copy in memory that its user cannot read, so that no worker can trace it.
 */

#include "supervisor/keeper/keeper.h"
#include <limits.h>

#define PROGRAM_NAME "trouped-supervisor"

struct program {
    struct keeper_program keeper;
    char path[PATH_MAX];
    char **argv; /* passed to it, and borrowed */
    int fd;
    int old_fd; /* during an upgrade, else -1 */
};

/* keeper_program.run, which follows fork(). */
int program_run(const struct keeper_program *keeper, const struct keeper_ends *ends);
