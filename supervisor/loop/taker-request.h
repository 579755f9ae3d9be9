/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages between the supervisor and a taker, on a SOCK_SEQPACKET pair. Both are the same program,
 * so the messages have no version. Each request carries one descriptor: the socket to read. */

#include <stdbool.h>
#include <stdint.h>

enum taker_kind {
    TAKER_RECEIVE, /* answered with a descriptor, and if that answer is not `is_done`, once more */
    TAKER_DISCARD, /* like TAKER_RECEIVE, but answered without a descriptor */
    TAKER_DRAIN,   /* answered with `is_done` only */
    TAKER_HOLD,    /* not answered: keeps the socket open, until the process ends */
};

struct taker_request {
    uint32_t kind;
};

struct taker_answer {
    int32_t result; /* 0 or -errno */
    bool is_done;   /* all descriptors of the request are closed, or cannot wait */
    uint64_t serial;
};

/* Receives one message and closes its descriptors. Returns 0 or -errno. */
int taker_drop_message(int socket);
/* Receives all messages in a socket that was shut down, and closes their descriptors. */
void taker_drain(int socket);
