/* SPDX-License-Identifier: MIT */
#pragma once

/* Of group.h, but inline and apart: cells, which call nothing of their group, ask as well. */

#include "supervisor/group/group-context.h"
#include "supervisor/group/group.h"
#include "supervisor/store/durable-job.h"

/* Whether its durable jobs are being read from disk, or will be after those of other groups. */
static inline bool group_awaits_restore(const struct group *group)
{
    return group->restores ||
           (!group->restored && !group->drained && group->context->durable->restores);
}
