/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Landlock's rules for the keys of [Sandbox] about files, where a process may not have mounts of
 * its own. Landlock only knows what is allowed, with all below; so it can express some of these
 * keys exactly, and others only as they are now. The rules allow nothing that the keys forbid; see
 * troupe.group(5) for what else they then forbid, and what they cannot.
 */

#include "supervisor/keeper/sandbox-files.h"
#include <stdint.h>

/*
 * Makes the rules, instead of sandbox_files_apply(). Paths are looked up now, by privileges that
 * the process has now. The rules apply from landlock_confine() on. Only a new process may call
 * this, and once. Returns 0 and sets `*ret_rules` to a descriptor; -EOPNOTSUPP without Landlock; or
 * -errno with `*ret_path` as there.
 */
int sandbox_landlock_list(const struct sandbox_files *files, uint64_t scopes, int *ret_rules,
                          const struct sandbox_path **ret_path);
