/* SPDX-License-Identifier: MIT */
#pragma once

/* Continues all groups where the last supervisor stopped. Each worker that has outlived it is
 * adopted, whether it is still wanted or not; then the ordinary rules go on: a pool that is too
 * large shrinks, a group that no file describes is removed. */

struct group_context;

void groups_resume(const struct group_context *context);
/* All of the last supervisor's jobs that are not on disk are there: removes the groups that no file
 * describes. */
void groups_remove_missing(const struct group_context *context);
