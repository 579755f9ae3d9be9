/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's program, trouped-supervisor: beside this one (a build tree) or installed. It is
 * kept open, so that a supervisor that crashes is started again from the same file, even if another
 * version has been installed meanwhile; an upgrade opens it again. Without privileges it is
 * executed from a copy in memory that its user cannot read, so that no worker can trace the
 * supervisor.
 */

#include "supervisor/keeper/keeper.h"
#include <limits.h>

struct program {
    struct keeper_program keeper;
    char path[PATH_MAX];
    char **argv;
    int fd;
    int old_fd; /* during an upgrade, else -1 */
};

/* Finds and opens it. `argv` is passed to it, and borrowed. If it is missing, it fails to run. */
void program_init(struct program *program, char **argv);
