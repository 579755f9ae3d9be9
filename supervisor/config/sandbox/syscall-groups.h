/* SPDX-License-Identifier: MIT */
#pragma once

/* The groups of system calls that SystemCallFilter= knows: those of systemd. */

/* The names of a group ("@aio"), separated by spaces, of system calls and of other groups; NULL if
 * there is no such group. Not every machine has each of these calls. */
const char *syscall_group_find(const char *name);
