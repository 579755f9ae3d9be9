/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Measures system calls on sockets whose other end belongs to a worker or client.
 *
 * A send, a receive, a shutdown and a close wake everything that waits at the other end, within the
 * call. The holder of that end can wait there a million times, by as many entries of epoll(7): then
 * each call takes a tenth of a second. The kernel has no way to avoid that or to ask for the
 * number. So an owner that has caused three such calls is barred for a while.
 *
 * What other processes take of the CPU does not count, but the clock without it is slow. It is read
 * only for some seconds after a call that seemed long.
 *
 * There is one state per process, like the thread of the loop.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct toll {
    bool exact; /* `begun` is the thread's CPU time */
    usec_t begun;
};

/* `now` is that of the loop. */
struct toll toll_begin(usec_t now);

enum toll_verdict {
    TOLL_FINE,
    TOLL_SUSPECT, /* it was long, or seems so */
    TOLL_BARRED,  /* it was one too many */
};

/* Judges the calls since toll_begin(), which are the fault of the owner (as in taker.h; 0 =
 * none). */
enum toll_verdict toll_end(struct toll toll, usec_t now, uint64_t owner);

/* Whether the owner is still barred: for 100 times as long as its long calls took. */
bool toll_bars(uint64_t owner, usec_t now);
