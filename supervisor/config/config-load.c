/* SPDX-License-Identifier: MIT */

/* Reads a configuration directory: config_read() and config_load(). */

#include "supervisor/config/config-load.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/config/check/check.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-exchange.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/syntax/strv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    struct config *config;
    struct config_problems *problems;
    const char *directory;
    struct config_draft *drafts; /* drafts[i] is the one of config->groups[i] */
};

/* ---- groups ---- */

static int read_dropins(struct config_draft *draft, const char *group_path)
{
    _cleanup_free_ char *directory = NULL;
    _cleanup_strv_ config_strv names = NULL;
    int r;

    directory = malloc(strlen(group_path) + strlen(".d") + 1);
    if (!directory)
        return -ENOMEM;
    stpcpy(stpcpy(directory, group_path), ".d");
    r = config_list(directory, CONFIG_DROPIN_SUFFIX, &names);
    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    if (r < 0 && r != -ENOMEM)
        return config_problem_add(draft->problems, directory, 0, "cannot be read: %s",
                                  strerror(-r));
    for (size_t i = 0; r == 0 && names && names[i]; i++) {
        _cleanup_free_ char *path = NULL;

        r = config_join(&path, directory, names[i], "");
        if (r == 0)
            r = config_draft_read(draft, path);
        if (r == -ENOENT) /* a dangling link, or removed meanwhile */
            r = config_problem_add(draft->problems, path, 0, "no such file");
    }
    return r;
}

static int bad_name(struct config_problems *problems, const char *path)
{
    return config_problem_add(problems, path, 0,
                              "not a possible name of a group; allowed: up to %d characters of "
                              "A-Z a-z 0-9 _ . @ -, the first one a letter or a digit",
                              CONFIG_GROUP_NAME_MAX);
}

int config_read_group(struct config_draft *draft, struct config_problems *problems,
                      const char *path, struct config_group **ret)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    _cleanup_free_ char *name = strndup(file, strlen(file) - strlen(CONFIG_GROUP_SUFFIX));
    struct config_group *group = NULL;
    int r;

    *ret = NULL;
    if (!name)
        return -ENOMEM;
    r = config_defaults(&group, name);
    if (r == -EINVAL)
        return bad_name(problems, path);
    if (r < 0)
        return r;
    group->path = strdup(path);
    r = group->path ? config_draft_init(draft, &CONFIG_GROUP_SCHEMA, group, problems) : -ENOMEM;
    if (r == 0)
        r = config_draft_read(draft, path);
    if (r == 0 && draft->paths)
        r = read_dropins(draft, path);
    if (r < 0)
        config_group_free(group);
    else
        *ret = group;
    return r;
}

int config_check_read(struct config_draft *draft, struct config_group *group)
{
    return draft->paths ? config_check_group(draft, group) : 0;
}

static int load_group(struct loader *loader, const char *name)
{
    struct config *config = loader->config;
    struct config_draft *draft = &loader->drafts[config->n_groups];
    struct config_group *group;
    _cleanup_free_ char *path = NULL;
    int r;

    r = config_join(&path, loader->directory, name, CONFIG_GROUP_SUFFIX);
    if (r == 0)
        r = config_read_group(draft, loader->problems, path, &group);
    if (r == -ENOENT)
        r = config_problem_add(loader->problems, path, 0, "no such file");
    else if (r == 0 && group) {
        config->groups[config->n_groups++] = group;
        return config_check_read(draft, group);
    }
    config_draft_deinit(draft);
    return r;
}

static bool contains(config_strv names, const char *name)
{
    for (size_t i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Warns of drop-in directories without a group. */
static int warn_of_orphans(const struct loader *loader, config_strv names)
{
    _cleanup_strv_ config_strv stems = NULL;
    int r = config_list_stems(loader->directory, CONFIG_GROUP_SUFFIX ".d", &stems);

    for (size_t i = 0; r == 0 && stems && stems[i]; i++)
        if (!contains(names, stems[i]))
            log_warning("%s/%s" CONFIG_GROUP_SUFFIX
                        ".d is ignored: there is no %s" CONFIG_GROUP_SUFFIX " beside it",
                        loader->directory, stems[i], stems[i]);
    return r;
}

static int load_groups(struct loader *loader)
{
    _cleanup_strv_ config_strv names = NULL;
    size_t n;
    int r;

    r = config_list_stems(loader->directory, CONFIG_GROUP_SUFFIX, &names);
    if (r < 0)
        return r;
    n = strv_length((const char *const *)names);
    loader->config->groups = calloc(n + 1, sizeof(struct config_group *));
    loader->drafts = calloc(n + 1, sizeof(*loader->drafts));
    if (!loader->config->groups || !loader->drafts)
        return -ENOMEM;
    for (char **name = names; r == 0 && name && *name; name++)
        r = load_group(loader, *name);
    if (r == 0)
        r = warn_of_orphans(loader, names);
    if (r == 0)
        r = config_check_after(loader->drafts, loader->config->groups, loader->config->n_groups);
    return r;
}

/* ---- the daemon ---- */

int config_read_daemon(struct config_draft *draft, struct config_daemon *daemon, const char *path,
                       struct config_problems *problems)
{
    int r = config_draft_init(draft, &CONFIG_DAEMON_SCHEMA, daemon, problems);

    return r < 0 ? r : config_draft_read(draft, path);
}

static int load_daemon(struct loader *loader)
{
    struct config_draft draft = CONFIG_DRAFT_NULL;
    struct config *config = loader->config;
    _cleanup_free_ char *path = NULL;
    int r;

    r = config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &config->daemon);
    if (r == 0)
        r = config_join(&path, loader->directory, CONFIG_DAEMON_FILE, "");
    if (r == 0)
        r = config_read_daemon(&draft, &config->daemon, path, loader->problems);
    if (r == 0 && draft.paths && !(config->daemon_draft = config_draft_keep(&draft)))
        r = -ENOMEM;
    config_draft_deinit(&draft);
    return r == -ENOENT ? 0 : r;
}

/* ---- a directory ---- */

bool config_problem_is_of(const struct config_problem *problem, const char *directory,
                          const char *name, const char *suffix)
{
    const char *path = problem->path;
    size_t length = strlen(directory);

    if (strncmp(path, directory, length) != 0)
        return false;
    for (path += length; *path == '/'; path++)
        ;
    length = strlen(name);
    if (strncmp(path, name, length) != 0 || strncmp(path + length, suffix, strlen(suffix)) != 0)
        return false;
    path += length + strlen(suffix);
    return *path == '\0' || strncmp(path, ".d/", 3) == 0 || strcmp(path, ".d") == 0;
}

static bool has_problem(const struct loader *loader, const char *name, const char *suffix)
{
    for (size_t i = 0; i < loader->problems->n_problems; i++)
        if (config_problem_is_of(&loader->problems->problems[i], loader->directory, name, suffix))
            return true;
    return false;
}

/* Removes the groups and exchanges that have a problem. */
static void drop_broken(const struct loader *loader)
{
    struct config *config = loader->config;
    size_t n = 0;

    for (size_t i = 0; i < config->n_groups; i++) {
        if (has_problem(loader, config->groups[i]->name, CONFIG_GROUP_SUFFIX))
            config_group_free(config->groups[i]);
        else
            config->groups[n++] = config->groups[i];
    }
    config->n_groups = n;
    n = 0;
    for (size_t i = 0; i < config->n_exchanges; i++) {
        if (has_problem(loader, config->exchanges[i]->name, CONFIG_EXCHANGE_SUFFIX))
            config_exchange_free(config->exchanges[i]);
        else
            config->exchanges[n++] = config->exchanges[i];
    }
    config->n_exchanges = n;
}

/* Keeps the drafts with their groups: later problems refer to the places of keys. */
static int keep_drafts(struct loader *loader, int r)
{
    for (size_t i = 0; i < loader->config->n_groups; i++) {
        struct config_draft *draft = &loader->drafts[i];

        if (r == 0 && draft->paths &&
            !(loader->config->groups[i]->draft = config_draft_keep(draft)))
            r = -ENOMEM;
        config_draft_deinit(draft);
    }
    free(TAKE_PTR(loader->drafts));
    return r;
}

/* As config_read(), but keeps also what has a problem. */
static int read_all(struct loader *loader)
{
    size_t n_before = loader->problems->n_problems;
    int r;

    loader->config = calloc(1, sizeof(*loader->config));
    if (!loader->config)
        return -ENOMEM;
    r = load_daemon(loader);
    if (r == 0)
        r = load_groups(loader);
    if (r == 0)
        r = config_load_exchanges(loader->config, loader->directory, loader->problems);
    r = keep_drafts(loader, r);
    if (r < 0)
        loader->config = config_free(loader->config);
    else if (loader->problems->n_problems > n_before)
        r = CONFIG_E_INVALID;
    return r;
}

int config_read(struct config **ret, const char *directory, struct config_problems *problems)
{
    struct loader loader = {.problems = problems, .directory = directory};
    int r = read_all(&loader);

    if (r == CONFIG_E_INVALID)
        drop_broken(&loader);
    if (r >= 0)
        *ret = loader.config;
    return r;
}

static int resolve_all(struct config *config, struct config_problems *problems)
{
    struct names names = NAMES_NULL;
    int r = config_want_names(config, &names);

    if (r == 0)
        r = names_look_up(&names);
    if (r == 0)
        r = config_resolve(config, &names, problems);
    names_deinit(&names);
    return r;
}

int config_load(struct config **ret, const char *directory, struct config_problems *problems)
{
    struct loader loader = {.problems = problems, .directory = directory};
    size_t n_before = problems->n_problems;
    int r = read_all(&loader);

    if (r >= 0)
        r = resolve_all(loader.config, problems);
    if (r == 0 && problems->n_problems > n_before)
        r = CONFIG_E_INVALID;
    if (r == 0)
        *ret = loader.config;
    else
        config_free(loader.config);
    return r;
}
