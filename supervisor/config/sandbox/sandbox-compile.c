/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include <errno.h>
#include <stdlib.h>

struct sandbox *sandbox_free(struct sandbox *sandbox)
{
    for (size_t i = 0; sandbox && i < sandbox->n_filters; i++)
        free(sandbox->filters[i].code);
    free(sandbox);
    return NULL;
}

static bool has_filters(const struct config_group *group)
{
    return filter_restricts(group) || filter_lists_syscalls(group);
}

static bool has_sandbox(const struct config_group *group)
{
    return group->no_new_privileges_set || group->umask_set ||
           group->capability_bounding_set.n > 0 || group->ambient_capabilities.n > 0 ||
           has_filters(group);
}

static int compile_filters(const struct config_group *group, struct sandbox *sandbox)
{
    int r = 0;

    /* The list may forbid to load the other. */
    if (filter_restricts(group))
        r = filter_compile_restrictions(group, &sandbox->filters[sandbox->n_filters++]);
    if (r == 0 && filter_lists_syscalls(group))
        r = filter_compile_syscalls(group, &sandbox->filters[sandbox->n_filters++]);
    return r;
}

static void take_privileges(const struct config_group *group, struct sandbox *sandbox)
{
    const bool has_user = group->user || group->group_name;
    const bool ordinary = has_user && group->uid != 0;

    sandbox->ambient = sandbox_set(&group->ambient_capabilities, sandbox_capability);
    sandbox->bounding = ordinary ? 0 : UINT64_MAX;
    if (group->capability_bounding_set.n > 0)
        sandbox->bounding = sandbox_set(&group->capability_bounding_set, sandbox_capability);
    sandbox->bounding |= sandbox->ambient;
    sandbox->no_new_privileges = group->no_new_privileges_set ? group->no_new_privileges : has_user;
}

int sandbox_compile(const struct config_group *group, struct sandbox **ret)
{
    struct sandbox *sandbox;
    int r;

    *ret = NULL;
    if (!has_sandbox(group))
        return 0;
    sandbox = calloc(1, sizeof(*sandbox));
    if (!sandbox)
        return -ENOMEM;
    take_privileges(group, sandbox);
    sandbox->set_umask = group->umask_set;
    sandbox->umask = group->umask;
    r = compile_filters(group, sandbox);
    *ret = r < 0 ? sandbox_free(sandbox) : sandbox;
    return r;
}
