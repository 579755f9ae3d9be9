/* SPDX-License-Identifier: MIT */
#pragma once

/* Starts the process of a command. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct spawn_command {
    const char *path;
    char *const *argv;
    const sigset_t *mask; /* its signal mask */
    const void *input;    /* standard input */
    size_t input_size;    /* 0 = /dev/null */
    bool channels;        /* for items and checkpoints: up to COMMAND_LAST_FD */
    const void *last;     /* the last checkpoint */
    size_t last_size;     /* 0 = /dev/null */
    int reader;           /* the reader's socket (reader.h) */
};

struct spawned {
    pid_t pid; /* also its process group */
    int pidfd;
};

/* clang-format off */
#define SPAWNED_NULL {.pid = -1, .pidfd = -1}
/* clang-format on */

/* Starts the command, which inherits the environment. Returns 0 or -errno, including execve(2)'s;
 * -EFBIG if the input or the checkpoint is above RLIMIT_FSIZE. Even after an error, the reader may
 * have pipes. */
int spawn_command(struct spawned *ret, const struct spawn_command *command);

/* Closes the descriptor. The caller reaps the process. */
void spawned_deinit(struct spawned *spawned);
