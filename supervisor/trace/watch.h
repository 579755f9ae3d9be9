/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Watches a process and those that it starts: traces them, and when one gets a signal that ends it
 * because it has crashed, takes its stacks before the signal has its effect. It follows orders of
 * the supervisor (shared/protocol/trace.h), waits for none, and ends with the supervisor's socket.
 * When it ends, for whatever reason, the processes that it traced continue.
 */

#include "shared/protocol/trace.h"
#include <stdbool.h>

/* `drops`: it has more capabilities than the worker, and gives these up once it is attached.
 * Returns 0 or -errno. */
int watch(struct trace_output *output, bool drops);
