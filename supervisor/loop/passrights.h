/* SPDX-License-Identifier: MIT */
#pragma once

/* Sockets that accept no descriptors (SO_PASSRIGHTS, Linux 6.16). On others every message may carry
 * descriptors, and closing those may block (closer.h). */

#include <stdbool.h>

/* From now on nobody can send descriptors to the socket or to sockets accepted from it. False on
 * older kernels. */
bool passrights_refuse(int fd);

/* Whether an accepted socket has refused descriptors from its beginning. */
bool passrights_refused(int fd);
