/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes our own descriptors in a thread if the last close takes long: that of a large memfd frees
 * its pages, that of a mount unmounts. These closes always end. The supervisor leaves closes that a
 * worker or client can prolong to another process: see taker.h.
 *
 * There is one closer per process, like the table of descriptors. */

/* Starts the thread. Until then closer_close() is close(2). 0 or -errno. */
int closer_start(void);

/* Closes `fd` soon, -1 allowed; keeps errno. */
void closer_close(int fd);

/* Waits until all are closed, for at most `msec`. Call it before fork(): the new process would get
 * copies of what is still to be closed, and its exec would close them last. */
void closer_settle(unsigned msec);

/* In a child of fork(), which has no threads: without it, the child would have its parent close
 * descriptors of the same numbers. Idempotent. */
void closer_forget(void);
