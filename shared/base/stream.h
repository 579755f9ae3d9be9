/* SPDX-License-Identifier: MIT */
#pragma once

/* The client's end of a Unix stream socket. */

#include "shared/base/clock.h"
#include <stddef.h>

/*
 * Connects to the socket at `path`, of any length. `timeout` bounds each later wait for the other
 * end; USEC_INFINITY = none, 0 = nothing waits. Returns a descriptor, -ETIMEDOUT, or another -errno
 * of socket(2) or connect(2): with 0, -EAGAIN while too many connections wait to be accepted.
 */
int stream_connect(const char *path, usec_t timeout);

/* Sends all of `data`. Returns 0, -ETIMEDOUT, or another -errno of send(2). */
int stream_send(int fd, const char *data, size_t size);
