/* SPDX-License-Identifier: MIT */
#pragma once

/* A connection that carries Varlink messages: JSON text, each ended by a NUL byte. */

#include "shared/base/clock.h"
#include <stddef.h>

struct wire {
    int socket;
    char *buffer; /* the current message, and what arrived behind it */
    size_t size, capacity;
    size_t message; /* bytes of the current message with its NUL; 0 = none */
};

void wire_deinit(struct wire *wire);

/*
 * Waits up to `timeout` for the next message, which stays at the begin of `buffer` until
 * wire_drop(). Returns 0, -EAGAIN, -EINTR, -EPIPE, -EPROTO when it is too long, or -ENOMEM.
 */
int wire_receive(struct wire *wire, usec_t timeout);
void wire_drop(struct wire *wire);
