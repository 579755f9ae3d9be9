/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Runs a command in a process group of its own: feeds it, collects its output, ends and reaps it.
 * If a command temporarily cannot start, for example because its program is being replaced, further
 * starts follow until one succeeds. When command_run() returns, the command's group has been
 * killed, and, if leftovers_begin() was called, also the processes that have left it; no zombie or
 * descriptor remains, unless `leftovers` is set.
 */

#include "shared/base/clock.h"
#include "worker/exec/reader.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#define COMMAND_TAIL_MAX 1024

/* Why command_run() ended the command, or why its end is not known. */
enum command_stop {
    COMMAND_NOT_STOPPED,
    COMMAND_CANCELLED,  /* requested by `tick` */
    COMMAND_TERMINATED, /* this process got SIGTERM, SIGINT or SIGHUP */
    COMMAND_OVERFLOW,   /* output above `max_output` */
    COMMAND_TRACED,     /* it has ended, but another process keeps its status */
    COMMAND_UNREAD,     /* the reader has ended or hangs, so output is lost */
};

struct command_progress {
    int pid;         /* -1 = not started */
    int start_error; /* -errno: why it cannot start now; 0 if it has started */
    size_t output_size;
};

struct command_options {
    const char *path;
    char *const *argv;
    const void *input; /* standard input; NULL = /dev/null */
    size_t input_size;
    bool channels;    /* for items and checkpoints */
    const void *last; /* the last checkpoint */
    size_t last_size;
    struct reader
        *reader; /* borrowed; started if it is not running, and kept for the next command */
    size_t max_output;
    usec_t kill_after; /* between SIGTERM and SIGKILL */
    /* Called about twenty times a second until the command has ended. Returns true to end it. */
    bool (*tick)(void *userdata, const struct command_progress *progress);
    /* Takes an item or a checkpoint of the command (READER_ITEM, READER_CHECKPOINT); NULL = discard
     * these. */
    void (*take)(void *userdata, const struct reader_message *message);
    void *userdata;
};

struct command_end {
    enum command_stop stop;
    int signal;       /* that this process got; 0 = none */
    pid_t sender;     /* of that; 0 = the kernel, or a process of another PID namespace */
    uid_t sender_uid; /* valid if `sender` */
    bool signalled;   /* a signal ended the command */
    int code;         /* exit status or signal */
    bool core_dumped;
    int start_error; /* -errno: it was stopped before it could start; other members are invalid */
    int pid;         /* the command's */
    usec_t uptime;
    struct rusage usage;
    bool leftovers; /* processes that it has left behind may be alive */
    char *output;
    size_t output_size;
    char tail[COMMAND_TAIL_MAX]; /* the end of standard error */
    size_t tail_size;
    bool hidden; /* set by the caller: the sandbox does not show the file that is the argument */
};

/* clang-format off */
#define COMMAND_END_NULL {.stop = COMMAND_NOT_STOPPED}
/* clang-format on */

/*
 * Returns 0 if the command was started, whatever the outcome, or was stopped before; the caller
 * then calls command_end_deinit(). Returns -errno if the command cannot be started. The caller must
 * ignore SIGPIPE. Not reentrant.
 */
int command_run(const struct command_options *options, struct command_end *ret);
void command_end_deinit(struct command_end *end);
