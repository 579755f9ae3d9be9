/* SPDX-License-Identifier: MIT */
#pragma once

/* The directories of a worker with PrivateTmp=job, which are emptied after each job, at the latest
 * before the next one. */

#include <stdbool.h>
#include <stddef.h>

#define PRIVATE_TMPS 2

struct private_tmp {
    int fds[PRIVATE_TMPS];
    size_t n_fds;
    bool used; /* by a job, since they were emptied; set by the caller */
};

/* clang-format off */
#define PRIVATE_TMP_NULL {.n_fds = 0}
/* clang-format on */

/*
 * Opens those of /tmp and /var/tmp that the supervisor has mounted for this process, recognised by
 * the name of their file system: no other directory is ever emptied. Returns 0 (even if there are
 * none) or -errno.
 */
int private_tmp_open(struct private_tmp *tmp);

/*
 * If they were used: removes all entries, with any permissions and at any depth, except those of
 * another user and mount points. Returns 0 or -errno.
 */
int private_tmp_empty(struct private_tmp *tmp);

void private_tmp_deinit(struct private_tmp *tmp);
