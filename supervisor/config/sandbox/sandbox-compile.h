/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns the keys of [Sandbox] into what a new process applies. */

#include "supervisor/config/config-group.h"
#include "supervisor/keeper/sandbox.h"

/*
 * The group's user is resolved. Sets `*ret` to NULL if the group has no such key; sandbox_free()
 * ends it. Takes about 10 ms if there are filters. Returns 0 or -errno.
 */
int sandbox_compile(const struct config_group *group, struct sandbox **ret);
struct sandbox *sandbox_free(struct sandbox *sandbox); /* NULL allowed; returns NULL */
