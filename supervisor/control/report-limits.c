/* SPDX-License-Identifier: MIT */

/* Reports resource limits that have no effect because a cgroup controller is missing. */

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/report.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/process.h"
#include <stdio.h>

/* Groups named per key; further ones are only counted. */
#define NAMES_MAX 10

/* Writes "MemoryMax= (thumbnails, hog)"; nothing if no group has this limit without effect. */
static bool write_limit(FILE *file, const struct control_context *context, unsigned limit,
                        bool first)
{
    const unsigned there = cgroup_tree_controllers(context->process->cgroups);
    const struct registry *registry = context->registry;
    size_t n = 0;

    for (size_t i = 0; i < registry->n_groups; i++) {
        const struct group *group = registry->sorted[i];

        if (!cgroup_limit_unmet(there, group->config, limit))
            continue;
        if (n == 0)
            fprintf(file, "%s%s (", first ? "" : ", ", cgroup_limit_key(limit));
        if (n < NAMES_MAX)
            fprintf(file, "%s%s", n > 0 ? ", " : "", group->name);
        n++;
    }
    if (n > NAMES_MAX)
        fprintf(file, " and %zu more", n - NAMES_MAX);
    if (n > 0)
        fputc(')', file);
    return n > 0;
}

void report_cgroups(struct reply *reply, const struct control_context *context)
{
    _cleanup_free_ char *limits = NULL, *text = NULL;
    const char *tree = context->cgroups_text ? context->cgroups_text : "";
    bool any = false;
    size_t size;
    FILE *file = open_memstream(&limits, &size);

    for (unsigned i = 0; file && i < CGROUP_LIMITS; i++)
        any = write_limit(file, context, i, !any) || any;
    if (!file || fclose(file) != 0 || !any ||
        asprintf(&text, "%s, so these have no effect: %s", tree, limits) < 0)
        text = NULL;
    reply_string(reply, "cgroups", text ? text : tree);
}

void report_unmet(struct reply *reply, const struct group *group)
{
    char keys[CGROUP_UNMET_SIZE];

    if (cgroup_unmet(cgroup_tree_controllers(group->context->pools->process->cgroups),
                     group->config, keys, sizeof(keys)) > 0)
        reply_string(reply, "no_effect", keys);
}
