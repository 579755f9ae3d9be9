/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A separate process that reads what commands write: the reader. A command can lock its pipes
 * forever: splice(2) from an empty socket holds the pipe's lock while it waits, and then reads,
 * writes, and even the last close of the other end wait, uninterruptibly. It can also send such an
 * end over a socket, for the receiver to close. So the worker's process never has an end of these
 * pipes and sockets. The command's process creates them and sends their read ends to the reader,
 * which forwards the data over a socket that no command has. A reader that hangs is killed and
 * replaced.
 *
 * The reader is a copy of the worker's process and ends with it. wait(2) finds it only with
 * __WCLONE, so it does not count as a command's leftover.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

struct reader {
    pid_t pid; /* 0 = not running */
    int fd;    /* becomes readable when the reader has sent a message; -1 = not running */
};

/* clang-format off */
#define READER_NULL {.fd = -1}
/* clang-format on */

/* The descriptors of a command beside its standard streams. All have one digit, because some shells
 * take no others. */
enum {
    COMMAND_EMIT_FD = STDERR_FILENO + 1, /* each write is an item */
    COMMAND_CHECKPOINT_FD,               /* each write is a checkpoint */
    COMMAND_LAST_FD,                     /* to read the last checkpoint from */
    COMMAND_FDS_END,
};

/* The kind of a message of the reader. */
enum reader_tag {
    READER_OUTPUT = 'o', /* of the command's standard output */
    READER_ERROR = 'e',  /* of its standard error */
    READER_ITEM = 'i',
    READER_CHECKPOINT = 'c',
    READER_DONE = 'd', /* the answer to reader_finish() */
};

struct reader_message {
    enum reader_tag tag;
    const char *data; /* borrowed: valid until the next reader_receive() */
    size_t size;
};

/* Starts a reader unless one is running. Returns 0 or -errno. */
int reader_start(struct reader *reader);

/* Makes pipes and sockets, sends their read ends to the reader, whose socket is `fd`, and makes
 * their write ends the calling process's descriptors 1 and 2, and with `channels` those up to
 * COMMAND_CHECKPOINT_FD. Called in the command's process after fork; async-signal-safe. Returns 0
 * or -errno. */
int reader_attach(int fd, bool channels);

/* Asks the reader for the rest of the data and to close pipes and sockets; READER_DONE follows.
 * Does not wait. Returns 0, or -errno if the reader has ended. */
int reader_finish(const struct reader *reader);

/* Receives the next message, without waiting. Returns 1, 0 if there is none, or -errno if the
 * reader has ended. Not reentrant. */
int reader_receive(const struct reader *reader, struct reader_message *ret);

/* Kills the reader, if it is running, and waits at most `limit` for its end. Returns false if it
 * has not ended by then; it is forgotten in both cases. */
bool reader_end(struct reader *reader, usec_t limit);
