/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sockets that let no descriptors in (SO_PASSRIGHTS, Linux 6.16). What is sent to others may hold
 * descriptors, and receiving or closing them may wait for whatever they are (closer.h).
 */

#include <stdbool.h>

/* From now on nobody can send descriptors to the socket, or to what will be accepted from it.
 * False on older kernels. */
bool passrights_refuse(int fd);

/* Whether that was so since the socket was made. Of an accepted one. */
bool passrights_refused(int fd);
