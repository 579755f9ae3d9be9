/* SPDX-License-Identifier: MIT */
#pragma once

/* Closes connections of clients that are not served. Descriptors may be queued in them, and those
 * of connections that are never accepted are closed with the listening socket: such a close may
 * block (taker.h), in whichever process closes that socket last. */

struct loop;

/* Closes a connection that was accepted. */
void listener_turn_away(struct loop *loop, int connection);

/* If this is a listening socket, refuses further connections, and closes those that wait to be
 * accepted. The caller closes the socket. */
void listener_end(int fd);
