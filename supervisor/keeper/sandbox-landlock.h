/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Landlock's rules for the keys of [Sandbox] about files. Landlock only knows what is allowed, with
 * all below; so it can express some of these keys exactly, and others only as they are now.
 *
 * Where mounts confine a process, Landlock is a second wall: it forbids nothing that the mounts
 * allow, except to write to FIFOs in what is read-only. Where mounts are not permitted, it is the
 * only one, and allows nothing that the keys forbid; see troupe.group(5) for what else it then
 * forbids, and what it cannot.
 *
 * Paths are looked up when the rules are made, by privileges that the process has then. The rules
 * apply from landlock_confine() on. Like sandbox_files_apply(), only a new process may call these
 * functions, and once. Each sets `*ret_rules` to a descriptor, or -1 if there is nothing to forbid.
 */

#include "supervisor/keeper/sandbox-files.h"
#include <stdint.h>

/* After sandbox_files_apply(); `files` is NULL if no wall is wanted. A kernel that lacks something
 * is no error. Returns 0 or -errno. */
int sandbox_landlock_beside(const struct sandbox_files *files, uint64_t scopes, int *ret_rules);

/* Instead of sandbox_files_apply(). Returns 0, -EOPNOTSUPP without Landlock, or -errno with
 * `*ret_path` as there. */
int sandbox_landlock_instead(const struct sandbox_files *files, uint64_t scopes, int *ret_rules,
                             const struct sandbox_path **ret_path);
