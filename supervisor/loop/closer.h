/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Closes descriptors in a thread of its own, where nobody waits for it.
 *
 * The last close of a file may take as long as whoever made the file wants: a TCP socket with
 * SO_LINGER waits for its peer, a file on a file server for the server, a large memfd for its pages
 * to be freed. A Unix socket closes what was sent to it and not received. So everything that a
 * stranger has made, or may have filled, is closed here.
 *
 * The closer is one per process, like the table of descriptors that it works on.
 */

/* Starts the thread. 0 or -errno; until it has been started, closer_close() is close(2). */
int closer_start(void);

/*
 * Closes `fd` soon; keeps errno. A socket whose poll is still armed in a ring must not come here:
 * the ring's reference would be the last one, and the loop would wait in its stead (loop_close()).
 */
void closer_close(int fd);
