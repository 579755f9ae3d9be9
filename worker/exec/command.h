/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One run of a command: in a process group of its own, fed, watched, ended and reaped. When
 * command_run() returns, nothing of it is left: its whole group has been killed, and no zombie or
 * descriptor remains.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#define COMMAND_TAIL_MAX 1024

/* Why it was not left to end by itself. */
enum command_stop {
    COMMAND_NOT_STOPPED,
    COMMAND_CANCELLED,  /* the `tick` said so */
    COMMAND_TERMINATED, /* this process got SIGTERM, SIGINT or SIGHUP */
    COMMAND_OVERFLOW,   /* it wrote more than `max_output` */
};

struct command_options {
    const char *path;
    char *const *argv;
    char *const *environment;
    const void *input; /* for its standard input; NULL = /dev/null */
    size_t input_size;
    size_t max_output;
    usec_t kill_after; /* between SIGTERM and SIGKILL */
    /* Called about twenty times a second while it runs; true: end it. */
    bool (*tick)(void *userdata, int pid, size_t output_size);
    void *userdata;
};

struct command_end {
    enum command_stop stop;
    int signal;     /* that this process got, with COMMAND_TERMINATED */
    bool signalled; /* how the command ended */
    int code;       /* exit status, or the signal */
    bool core_dumped;
    int pid; /* that it had */
    usec_t uptime;
    struct rusage usage;
    char *output;
    size_t output_size;
    char tail[COMMAND_TAIL_MAX]; /* the last of its standard error */
    size_t tail_size;
};

/* clang-format off */
#define COMMAND_END_NULL {.stop = COMMAND_NOT_STOPPED}
/* clang-format on */

/*
 * 0 when the command was started, however it ended; `ret` is then to be ended with
 * command_end_deinit(). -errno when it could not be: execve(2)'s, or out of processes, descriptors,
 * memory. The caller ignores SIGPIPE. Not reentrant.
 */
int command_run(const struct command_options *options, struct command_end *ret);
void command_end_deinit(struct command_end *end);
