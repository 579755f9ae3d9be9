/* SPDX-License-Identifier: MIT */
#pragma once

/* A directory for the database of a test. */

#include <limits.h>

struct scratch {
    char parent[64];
    char directory[80]; /* does not exist at first */
    char path[96];      /* of the database in it */
};

void scratch_init(struct scratch *scratch);
void scratch_init_in(struct scratch *scratch, const char *place);
/* Removes the directory with all that is in it. */
void scratch_deinit(struct scratch *scratch);
