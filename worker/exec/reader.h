/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A process that reads the output of commands. A command can lock its pipes for ever: splice(2)
 * from an empty socket waits with the pipe's lock held, and then reads, writes, and even the last
 * close of the other end wait, uninterruptibly. So this process never has an end of these pipes.
 * The command's process makes them, and sends the ends to read to the reader, which passes on what
 * it reads over a socket that no command has. A reader that hangs is given up.
 *
 * It is a copy of this process that wait(2) finds only with __WCLONE, so that it is no leftover of
 * a command. It ends with this process.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct reader {
    pid_t pid; /* 0 = none is running */
    int fd;    /* becomes readable when it has sent something; -1 = none is running */
};

/* clang-format off */
#define READER_NULL {.fd = -1}
/* clang-format on */

/* What a message of the reader is. */
enum reader_tag {
    READER_OUTPUT = 'o', /* of the command's standard output */
    READER_ERROR = 'e',  /* of its standard error */
    READER_DONE = 'd',   /* the answer to reader_finish() */
};

struct reader_message {
    enum reader_tag tag;
    const char *data; /* valid until the next call */
    size_t size;
};

/* Starts a reader unless one is running. Returns 0 or -errno. */
int reader_start(struct reader *reader);

/* Runs in the command's process, system calls only: makes its pipes, has them read, and makes them
 * its standard output and error. `fd` is the reader's. Returns 0 or -errno. */
int reader_attach(int fd);

/* Asks for the rest of what the command wrote, and to close its pipes. READER_DONE follows. Does
 * not wait. Returns 0, or -errno if the reader has ended. */
int reader_finish(const struct reader *reader);

/* Takes the next message, without waiting. Returns 1, 0 if there is none, or -errno if the reader
 * has ended. Not reentrant. */
int reader_receive(const struct reader *reader, struct reader_message *ret);

/* Kills the reader, if there is one. Returns false if it has not ended after `limit`. */
bool reader_end(struct reader *reader, usec_t limit);
