/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The end of a process that another one waits for. The kernel reports an end only when it has taken
 * down the memory, and for a process that has used io_submit(2) that takes tens of milliseconds:
 * its exit_aio() waits for a grace period of RCU. So the memory goes with another process, which
 * has nothing but that, and ends when this one has.
 */

/* Ends the process with `status`; nothing is freed. Its descriptors are closed first, as usual. */
_Noreturn void leave_at_once(int status);
