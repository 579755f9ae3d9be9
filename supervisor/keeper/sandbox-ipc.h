/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An IPC namespace in which there is never anything. All processes that could not use one of their
 * own share it: making one takes longer than a whole mount namespace.
 */

#include "supervisor/keeper/sandbox-namespace.h"
#include "supervisor/keeper/sandbox.h"

/* Whether a process can neither make nor reach anything in such a namespace, if it can write to no
 * file system of message queues. */
bool sandbox_ipc_is_unused(const struct sandbox *sandbox);

/* Moves this process into that namespace. Returns 0 or -errno. */
int sandbox_ipc_join(const struct sandbox_namespace *empty);
