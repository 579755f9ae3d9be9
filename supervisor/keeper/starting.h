/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors of processes that still share the keeper's descriptor table (spawn.h): they stay open
 * until the process has copied them. */

#include "supervisor/keeper/message.h"
#include <poll.h>
#include <sys/types.h>

#define STARTING_MAX 32
/* Copying fewer descriptors takes less time than hearing from the process that it has copied the
 * rest. */
#define STARTING_SHARE_MIN 256

struct starting_process {
    pid_t pid; /* 0 = unused */
    size_t n_fds;
    int fds[MESSAGE_FDS_MAX];
};

struct starting {
    int read_fd,
        write_fd; /* a pipe, for the indexes of those that have copied; -1 = share nothing */
    struct starting_process processes[STARTING_MAX];
};

void starting_init(struct starting *starting);
/* Sets the options to share the table if it has so many other descriptors that this is faster than
 * a copy, and if there is room. The descriptors of the options are those of `request`. */
void starting_share(const struct starting *starting, const struct message *request, size_t n_others,
                    struct spawn_options *options);
/* Takes over the descriptors of the request if the process shares the table. */
void starting_add(struct starting *starting, const struct spawn_options *options, pid_t pid,
                  struct message *request);
/* Closes what was copied. */
void starting_run(struct starting *starting);
/* Closes the descriptors of a process that has ended. */
void starting_remove(struct starting *starting, pid_t pid);
struct pollfd starting_wait(const struct starting *starting);
