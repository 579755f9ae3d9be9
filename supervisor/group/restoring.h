/* SPDX-License-Identifier: MIT */
#pragma once

/* Whether durable jobs are still to be read. Inline: cells ask as well, and call no group. */

#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/store/durable-job.h"

/* Whether its durable jobs are being read from disk, or will be after those of other groups. */
static inline bool group_awaits_restore(const struct group *group)
{
    return group->restores ||
           (!group->restored && !group->removed && group->context->durable->restores);
}
