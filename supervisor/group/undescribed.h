/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A group that no file describes any more, and of which durable jobs or kept results are on disk:
 * its file was removed while no supervisor ran, or while the group was stopped. It is a removed
 * group that cannot start, so that its jobs are listed, counted and can be cancelled. A reload that
 * finds a file for it takes it over; without jobs and results it is gone.
 */

#include "supervisor/group/group.h"
#include <stdbool.h>
#include <stddef.h>

/* Makes it, and adds it to the registry. `name` need not be terminated. Returns 0, -EINVAL (no
 * group can have the name), or -ENOMEM. */
int group_new_undescribed(struct group **ret, const struct group_context *context, const char *name,
                          size_t size);

static inline bool group_is_undescribed(const struct group *group)
{
    return group->config->unread && !group->config->path;
}

/* Logs what has been found of it on disk. */
void group_report_undescribed(struct group *group);

/* A reload has found no file: drops the results. Jobs wait on. */
void group_forget_undescribed(struct group *group);
