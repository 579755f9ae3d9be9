/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "shared/base/cleanup.h"
#include "shared/base/landlock.h"
#include "shared/base/list.h"
#include "supervisor/config/sandbox/filter-store.h"
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include <errno.h>
#include <stdlib.h>

/* The order in which they are loaded: the list of calls may forbid to load the other. */
static int (*const SETTINGS_OF[SANDBOX_FILTERS_MAX])(const struct config_group *group,
                                                     char **ret) = {
    filter_arguments_of,
    filter_calls_of,
};

/* The filters are borrowed from these. The sandbox comes first. */
struct compiled {
    struct sandbox sandbox;
    struct filter *filters[SANDBOX_FILTERS_MAX];
    struct call_set logged;
};

struct sandbox *sandbox_free(struct sandbox *sandbox)
{
    struct compiled *compiled = sandbox ? list_entry(sandbox, struct compiled, sandbox) : NULL;

    for (size_t i = 0; compiled && i < SANDBOX_FILTERS_MAX; i++)
        filter_unref(compiled->filters[i]);
    free(compiled);
    return NULL;
}

const struct call_set *sandbox_logged_calls(const struct sandbox *sandbox)
{
    return &((const struct compiled *)(const void *)sandbox)->logged;
}

/* ---- filters ---- */

static bool is_in_use(const char *settings)
{
    struct filter *filter = filter_ref_by_settings(settings);

    filter_unref(filter);
    return filter;
}

int sandbox_want(const struct config_group *group, struct names *names)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < SANDBOX_FILTERS_MAX; i++) {
        _cleanup_free_ char *settings = NULL;

        r = SETTINGS_OF[i](group, &settings);
        if (r == 0 && settings && !is_in_use(settings))
            r = names_want(names, NAMES_FILTER, settings);
    }
    return r;
}

/* The group that used the filter when names were wanted may have gone since. */
static int compile_here(const char *settings, struct filter **ret)
{
    struct sandbox_filter filter;
    int r = filter_compile(settings, &filter);

    if (r < 0)
        return r;
    *ret = filter_new(settings, filter.code, filter.size);
    free(filter.code);
    return *ret ? 0 : -ENOMEM;
}

static int get_filter(const char *settings, const struct names *names, struct filter **ret)
{
    const struct name *name = names_find(names, NAMES_FILTER, settings);

    *ret = filter_ref_by_settings(settings);
    if (*ret)
        return 0;
    if (!name)
        return compile_here(settings, ret);
    if (name->error != 0)
        return -name->error;
    *ret = filter_new(settings, name->name, name->size);
    return *ret ? 0 : -ENOMEM;
}

static int take_filters(const struct config_group *group, const struct names *names,
                        struct compiled *compiled)
{
    struct sandbox *sandbox = &compiled->sandbox;
    int r = 0;

    for (size_t i = 0; r == 0 && i < SANDBOX_FILTERS_MAX; i++) {
        _cleanup_free_ char *settings = NULL;

        r = SETTINGS_OF[i](group, &settings);
        if (r == 0 && settings)
            r = get_filter(settings, names, &compiled->filters[i]);
        if (r == 0 && settings)
            sandbox->filters[sandbox->n_filters++] = compiled->filters[i]->program;
    }
    return r;
}

/* ---- the rest ---- */

static bool has_sandbox(const struct config_group *group)
{
    return group->strict || group->no_new_privileges_set || group->umask_set ||
           group->capability_bounding_set.n > 0 || group->ambient_capabilities.n > 0;
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

static bool may_use(const struct config_group *group, const char *namespace)
{
    return group->restrict_namespaces.n == 0 ||
           sandbox_set(&group->restrict_namespaces, sandbox_namespace) >>
                   sandbox_namespace(namespace) &
               1;
}

/* In a domain of Landlock nobody mounts anything; systemd's keys alone do not forbid that. */
static bool may_mount(const struct config_group *group, const struct sandbox *sandbox)
{
    const bool privileged = sandbox->bounding >> sandbox_capability("CAP_SYS_ADMIN") & 1;

    return !sandbox->no_new_privileges || privileged ||
           (may_use(group, "user") && may_use(group, "mnt"));
}

static void take_landlock(const struct config_group *group, struct sandbox *sandbox)
{
    if (may_mount(group, sandbox))
        return;
    sandbox->wall = true;
    if (group->profile == CONFIG_PROFILE_STRICT)
        sandbox->scopes =
            LANDLOCK_SCOPE_SIGNALS | (group->private_network ? LANDLOCK_SCOPE_ABSTRACT_SOCKETS : 0);
}

int sandbox_compile(const struct config_group *group, const struct names *names,
                    struct sandbox **ret)
{
    struct compiled *compiled = calloc(1, sizeof(*compiled));
    struct sandbox *sandbox;
    int r;

    *ret = NULL;
    if (!compiled)
        return -ENOMEM;
    sandbox = &compiled->sandbox;
    take_privileges(group, sandbox);
    take_landlock(group, sandbox);
    sandbox->strict = group->strict;
    sandbox->set_umask = group->umask_set;
    sandbox->umask = group->umask;
    r = take_filters(group, names, compiled);
    if (r == 0)
        r = filter_logged_calls(group, &compiled->logged);
    if (r < 0 || (!has_sandbox(group) && sandbox->n_filters == 0))
        sandbox_free(sandbox);
    else
        *ret = sandbox;
    return r;
}
