/* SPDX-License-Identifier: MIT */
#include "supervisor/config/check/neighbours.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/syntax/path.h"
#include "supervisor/config/syntax/suggest.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t neighbours_find(const struct neighbours *neighbours, const char *name)
{
    size_t low = 0, high = neighbours->n_groups;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, neighbours->groups[middle]->name);

        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NEIGHBOURS_NONE;
}

static int unknown_group(const struct config_group *group, const char *key, const char *name,
                         const char *nearest)
{
    return config_draft_problem(group->draft, key, "%s=%s: unknown group%s%s%s", key, name,
                                nearest ? "; did you mean '"
                                        : "; allowed: names of NAME.group files",
                                nearest ? nearest : "", nearest ? "'?" : "");
}

int neighbours_check(const struct neighbours *neighbours, const struct config_group *group,
                     const char *key, const char *name)
{
    _cleanup_free_ const char **names = NULL;

    if (neighbours_find(neighbours, name) != NEIGHBOURS_NONE)
        return 0;
    names = calloc(neighbours->n_groups + 1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < neighbours->n_groups; i++)
        names[i] = neighbours->groups[i]->name;
    return unknown_group(group, key, name, suggest_nearest(name, names));
}

/* Returns whether the directory has a file for the group, or -ENOMEM. */
static int exists_in(const char *directory, size_t size, const char *name)
{
    _cleanup_free_ char *path = path_join_n(directory, size, name, ".group");

    return path ? access(path, F_OK) == 0 : -ENOMEM;
}

int neighbours_check_beside(const struct config_group *group, const char *key, const char *name,
                            bool *ret)
{
    const char *slash = strrchr(group->path, '/'), *directory = slash ? group->path : ".";
    const size_t size = slash ? (size_t)(slash - directory) : 1;
    int r = exists_in(directory, size, name);

    if (r == 0)
        r = exists_in(CONFIG_DIRECTORY, strlen(CONFIG_DIRECTORY), name);
    *ret = r > 0;
    return r == 0 ? unknown_group(group, key, name, NULL) : r < 0 ? r : 0;
}
