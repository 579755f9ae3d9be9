/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "shared/base/cleanup.h"
#include "shared/base/landlock.h"
#include "shared/base/list.h"
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A filter in use, by its settings: groups with equal settings share one, and a reload that does
 * not change the settings does not compile it again. */
struct filter {
    struct filter *next;
    unsigned n_references;
    struct sandbox_filter program;
    char settings[];
};

/* The sandbox comes first, and borrows the filter's program. */
struct compiled {
    struct sandbox sandbox;
    struct filter *filter; /* NULL = none */
    struct call_set logged;
};

const struct call_set *sandbox_logged_calls(const struct sandbox *sandbox)
{
    return &((const struct compiled *)(const void *)sandbox)->logged;
}

/* ---- the filter ---- */

static struct filter *filters;

static struct filter *find_filter(const char *settings)
{
    struct filter *filter = filters;

    while (filter && strcmp(filter->settings, settings) != 0)
        filter = filter->next;
    return filter;
}

/* Copies the program. Returns NULL when out of memory. */
static struct filter *add_filter(const char *settings, const void *code, size_t size)
{
    const size_t length = strlen(settings) + 1;
    struct filter *filter = malloc(sizeof(*filter) + length);
    void *copy = malloc(size);

    if (!filter || !copy) {
        free(filter);
        free(copy);
        return NULL;
    }
    memcpy(copy, code, size);
    *filter = (struct filter){.next = filters, .program = {.code = copy, .size = size}};
    memcpy(filter->settings, settings, length);
    return filters = filter;
}

static void unref_filter(struct filter *filter)
{
    struct filter **link = &filters;

    if (!filter || --filter->n_references > 0)
        return;
    while (*link != filter)
        link = &(*link)->next;
    *link = filter->next;
    free(filter->program.code);
    free(filter);
}

int sandbox_want(const struct config_group *group, struct names *names)
{
    _cleanup_free_ char *settings = NULL;
    int r = filter_settings_of(group, &settings);

    if (r == 0 && settings && !find_filter(settings))
        r = names_want(names, NAMES_FILTER, settings);
    return r;
}

/* The group that used the filter when names were wanted may have gone since. */
static int compile_here(const char *settings, struct filter **ret)
{
    struct sandbox_filter filter;
    int r = filter_compile(settings, &filter);

    if (r < 0)
        return r;
    *ret = add_filter(settings, filter.code, filter.size);
    free(filter.code);
    return *ret ? 0 : -ENOMEM;
}

static int get_filter(const char *settings, const struct names *names, struct filter **ret)
{
    const struct name *name = names_find(names, NAMES_FILTER, settings);

    *ret = find_filter(settings);
    if (*ret)
        return 0;
    if (!name)
        return compile_here(settings, ret);
    if (name->error != 0)
        return -name->error;
    *ret = add_filter(settings, name->name, name->size);
    return *ret ? 0 : -ENOMEM;
}

static int take_filter(const struct config_group *group, const struct names *names,
                       struct compiled *compiled)
{
    _cleanup_free_ char *settings = NULL;
    int r = filter_settings_of(group, &settings);

    if (r < 0 || !settings)
        return r;
    r = get_filter(settings, names, &compiled->filter);
    if (r < 0)
        return r;
    compiled->filter->n_references++;
    compiled->sandbox.filter = compiled->filter->program;
    return 0;
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

/* A process with scopes is in a domain of Landlock, where nothing can be mounted; systemd's keys
 * alone do not forbid that. */
static bool may_mount(const struct config_group *group, const struct sandbox *sandbox)
{
    const bool privileged = sandbox->bounding >> sandbox_capability("CAP_SYS_ADMIN") & 1;

    return !sandbox->no_new_privileges || privileged ||
           (may_use(group, "user") && may_use(group, "mnt"));
}

static void take_scopes(const struct config_group *group, struct sandbox *sandbox)
{
    /* Processes outside the domain can also not be traced: a template that loads could be, by a
     * worker that runs at that time. */
    if (group->template == CONFIG_TEMPLATE_SLOT)
        sandbox->scopes = LANDLOCK_SCOPE_SIGNALS;
    if (group->profile == CONFIG_PROFILE_STRICT && !may_mount(group, sandbox))
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
    take_scopes(group, sandbox);
    sandbox->strict = group->strict;
    sandbox->set_umask = group->umask_set;
    sandbox->umask = group->umask;
    r = take_filter(group, names, compiled);
    if (r == 0)
        r = filter_logged_calls(group, &compiled->logged);
    if (r < 0 || (!has_sandbox(group) && !compiled->filter && sandbox->scopes == 0))
        sandbox_free(sandbox);
    else
        *ret = sandbox;
    return r;
}

struct sandbox *sandbox_free(struct sandbox *sandbox)
{
    struct compiled *compiled = sandbox ? list_entry(sandbox, struct compiled, sandbox) : NULL;

    if (compiled)
        unref_filter(compiled->filter);
    free(compiled);
    return NULL;
}

/* ---- a network ---- */

int network_new(struct sandbox_network **ret)
{
    _cleanup_free_ struct sandbox_network *network = malloc(sizeof(*network));

    if (!network)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, network->storage) < 0)
        return -errno;
    *ret = TAKE_PTR(network);
    return 0;
}

struct sandbox_network *network_free(struct sandbox_network *network)
{
    for (size_t i = 0; network && i < ELEMENTS(network->storage); i++)
        close_fd(network->storage[i]);
    free(network);
    return NULL;
}
