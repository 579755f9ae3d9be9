/* SPDX-License-Identifier: MIT */
#pragma once

/* Other machines: troupe-nats(8), a program beside this one, does the work, so that troupectl needs
 * no library for NATS. */

#include <stdbool.h>
#include <stddef.h>

struct invocation;

/* Whether the command line names other machines: --cluster or --nats. */
bool cluster_is_wanted(const struct invocation *invocation);

/* Becomes troupe-nats, which does `verb` with the options and operands of the invocation, and
 * `data` as its standard input (NULL = as it is). Returns an exit status if that is impossible. */
int cluster_execute(const struct invocation *invocation, const char *verb, const char *data,
                    size_t size);
