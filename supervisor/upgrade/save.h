/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Saves for an upgrade what only this process knows: jobs that are not durable, with their kept
 * results, dead letters, death reports, what was asked of groups and cells and is shown of them,
 * actors with their messages, asks, timers, names and monitors, exchanges with their
 * subscriptions, and what attached clients wait for. The next supervisor brings it back with
 * upgrade/kinds.h.
 */

struct group_context;

/* Writes the file at `path` (saved-file.h), in place of any that is there. Nothing changes while
 * it runs, as the loop does not. From then on, this supervisor does not answer saved requests.
 * Returns 0 or -errno. */
int save(const char *path, const struct group_context *context);
