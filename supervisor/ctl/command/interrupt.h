/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Handles SIGINT and SIGTERM for verbs that must finish their work: the first signal is only noted,
 * the second exits at once with EXIT_INTERRUPTED.
 */

#include "shared/base/clock.h"
#include <stdbool.h>

/* How long to wait at most between two looks at interrupt_seen(): a signal that comes just before a
 * wait does not interrupt it. */
#define INTERRUPT_GLANCE (100 * USEC_PER_MSEC)

/* Starts catching signals; the first one interrupts waits (EINTR). Forgets earlier signals. */
void interrupt_catch(void);

/* Has `fn` run before the second signal exits; NULL = nothing. It may only do what signal handlers
 * may. */
void interrupt_before_exit(void (*fn)(void));

/* Whether the first signal has arrived. */
bool interrupt_seen(void);
