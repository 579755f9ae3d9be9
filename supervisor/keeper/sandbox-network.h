/* SPDX-License-Identifier: MIT */
#pragma once

/* A network of their own for the processes of a group: a namespace with a loopback interface only.
 */

#include "supervisor/keeper/sandbox-namespace.h"

/* Moves this process into that network. Returns 0 or -errno. */
int sandbox_network_join(const struct sandbox_namespace *network);
