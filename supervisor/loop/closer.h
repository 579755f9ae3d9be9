/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes our own descriptors in a thread if the last close takes long: for instance, that of a
 * large memfd frees its pages. Such closes always end. Descriptors whose close a worker or client
 * can prolong are left to another process: see taker.h.
 *
 * There is one closer per process, like the table of descriptors. */

/* Starts the thread. Until then closer_close() is close(2). 0 or -errno. */
int closer_start(void);

#define CLOSER_TEXT_SIZE 24 /* bytes, with the NUL */
/* Takes over `fd`: writes `text`, which is copied, to the file, and closes it. This happens in
 * another thread, which the first call after closer_start() starts, since the kernel may work on it
 * for long. With thousands of them waiting, the file is only closed. Errors are not reported. */
void closer_write(int fd, const char *text);

/* Closes `fd` soon, -1 allowed; keeps errno. */
void closer_close(int fd);
