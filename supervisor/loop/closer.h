/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes our own descriptors in a thread if the last close takes long: for instance, that of a
 * large memfd frees its pages. Such closes always end. Descriptors whose close a worker or client
 * can prolong are left to another process: see taker.h.
 *
 * There is one closer per process, like the table of descriptors. */

/* Starts the thread. Until then closer_close() is close(2). 0 or -errno. */
int closer_start(void);

/* Writes `text` to the file, and closes it: in another thread, which the first call after
 * closer_start() starts, since the kernel may work on it for long. With thousands of them waiting,
 * it only closes the file. */
#define CLOSER_TEXT_SIZE 24
void closer_write(int fd, const char *text);

/* Closes `fd` soon, -1 allowed; keeps errno. */
void closer_close(int fd);
