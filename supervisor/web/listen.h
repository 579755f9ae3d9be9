/* SPDX-License-Identifier: MIT */
#pragma once

/* Sockets on which browsers connect. */

#include "supervisor/web/options.h"

/*
 * Returns the number of sockets in `fds`, which the caller owns: those that the service manager has
 * passed, or new ones bound to the addresses of the options. Prints errors; returns -errno then.
 * Refuses addresses that other machines can reach unless the options allow it.
 */
int listen_open(const struct options *options, int fds[OPTIONS_LISTEN_MAX]);
