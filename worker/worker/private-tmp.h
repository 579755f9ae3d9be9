/* SPDX-License-Identifier: MIT */
#pragma once

/* The directories of a worker with PrivateTmp=job, which are emptied before each job. */

#include <stddef.h>

#define PRIVATE_TMPS 2

struct private_tmp {
    int fds[PRIVATE_TMPS];
    size_t n_fds;
};

/* clang-format off */
#define PRIVATE_TMP_NULL {.n_fds = 0}
/* clang-format on */

/*
 * Opens those of /tmp and /var/tmp that the supervisor has mounted for this process, which the name
 * of their file system tells: no other directory is ever emptied. Returns 0 (also if there are
 * none) or -errno.
 */
int private_tmp_open(struct private_tmp *tmp);

/*
 * Removes everything in them, whatever its permissions and depth, except for what belongs to
 * another user, and for places where something is mounted. Returns 0 or -errno.
 */
int private_tmp_empty(const struct private_tmp *tmp);

void private_tmp_deinit(struct private_tmp *tmp);
