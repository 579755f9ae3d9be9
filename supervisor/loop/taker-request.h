/* SPDX-License-Identifier: MIT */
#pragma once

/* Between the supervisor and a taker, one program: datagrams on a SOCK_SEQPACKET pair. Each request
 * carries one descriptor. */

#include <stdbool.h>
#include <stdint.h>

enum taker_kind {
    TAKER_RECEIVE, /* answered with a descriptor, then with `is_done` unless that comes at once */
    TAKER_DISCARD, /* the same without a descriptor */
    TAKER_DRAIN,   /* answered with `is_done` only */
};

struct taker_request {
    uint32_t kind;
};

struct taker_answer {
    int32_t result; /* 0 or -errno */
    bool is_done;   /* all descriptors of the request are closed, or cannot wait */
    uint64_t serial;
};

/* Receives one message and closes what it carries. Returns 0 or -errno. */
int taker_drop_message(int socket);
/* The same for all messages in a socket that was shut down. */
void taker_drain(int socket);
