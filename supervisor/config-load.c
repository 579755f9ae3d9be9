/* SPDX-License-Identifier: MIT */

/* From a directory, or a single file, to structs: config_load() and config_verify_file(). */

#include "../shared/cleanup.h"
#include "../shared/log.h"
#include "config-check.h"
#include "config-directory.h"
#include "config-draft.h"
#include "config-exchange.h"
#include "config-problem.h"
#include "strv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GROUP_SUFFIX  ".group"
#define DROPIN_SUFFIX ".conf"
#define DAEMON_FILE   "troupe.conf"

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
    r = config_list(directory, DROPIN_SUFFIX, &names);
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
        if (r == -ENOENT) /* a link to nowhere, or gone in between */
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

/*
 * A new group, its file and drop-ins read but not yet checked. 0 with `*ret` (NULL where the name
 * is not one) and `draft`, which is to be ended in any case; or -errno.
 */
static int read_group(struct config_draft *draft, struct config_problems *problems,
                      const char *path, struct config_group **ret)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    _cleanup_free_ char *name = strndup(file, strlen(file) - strlen(GROUP_SUFFIX));
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

/* Nothing can be said about the contents of a file that could not be read. */
static int check_group(struct config_draft *draft, struct config_group *group)
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

    r = config_join(&path, loader->directory, name, GROUP_SUFFIX);
    if (r == 0)
        r = read_group(draft, loader->problems, path, &group);
    if (r == -ENOENT)
        r = config_problem_add(loader->problems, path, 0, "no such file");
    else if (r == 0 && group) {
        config->groups[config->n_groups++] = group;
        return check_group(draft, group);
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

/* Drop-ins for no group: nothing is wrong with what there is, but somebody expects it to be more.
 */
static int warn_of_orphans(const struct loader *loader, config_strv names)
{
    _cleanup_strv_ config_strv stems = NULL;
    int r = config_list_stems(loader->directory, GROUP_SUFFIX ".d", &stems);

    for (size_t i = 0; r == 0 && stems && stems[i]; i++)
        if (!contains(names, stems[i]))
            log_warning("%s/%s" GROUP_SUFFIX ".d is ignored: there is no %s" GROUP_SUFFIX
                        " beside it",
                        loader->directory, stems[i], stems[i]);
    return r;
}

static int load_groups(struct loader *loader)
{
    _cleanup_strv_ config_strv names = NULL;
    size_t n;
    int r;

    r = config_list_stems(loader->directory, GROUP_SUFFIX, &names);
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

/* 0 or -errno; -ENOENT if there is no such file. */
static int read_daemon(struct config_daemon *daemon, const char *path,
                       struct config_problems *problems)
{
    struct config_draft draft;
    int r = config_draft_init(&draft, &CONFIG_DAEMON_SCHEMA, daemon, problems);

    if (r == 0)
        r = config_draft_read(&draft, path);
    if (r == 0 && draft.paths)
        r = config_check_daemon(&draft, daemon);
    config_draft_deinit(&draft);
    return r;
}

static int load_daemon(struct loader *loader)
{
    _cleanup_free_ char *path = NULL;
    int r;

    r = config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &loader->config->daemon);
    if (r == 0)
        r = config_join(&path, loader->directory, DAEMON_FILE, "");
    if (r == 0)
        r = read_daemon(&loader->config->daemon, path, loader->problems);
    return r == -ENOENT ? 0 : r;
}

int config_load(struct config **ret, const char *directory, struct config_problems *problems)
{
    struct loader loader = {.problems = problems, .directory = directory};
    size_t n_before = problems->n_problems;
    int r;

    loader.config = calloc(1, sizeof(*loader.config));
    if (!loader.config)
        return -ENOMEM;
    r = load_daemon(&loader);
    if (r == 0)
        r = load_groups(&loader);
    if (r == 0)
        r = config_load_exchanges(loader.config, directory, problems);
    for (size_t i = 0; i < loader.config->n_groups; i++)
        config_draft_deinit(&loader.drafts[i]);
    free(loader.drafts);
    if (r == 0 && problems->n_problems > n_before)
        r = CONFIG_E_INVALID;
    if (r == 0)
        *ret = loader.config;
    else
        config_free(loader.config);
    return r;
}

/* ---- single files ---- */

static int verify_group(const char *path, struct config_problems *problems)
{
    struct config_draft draft = CONFIG_DRAFT_NULL;
    struct config_group *group;
    _cleanup_free_ char *directory = strdup(path);
    char *slash;
    int r;

    if (!directory)
        return -ENOMEM;
    slash = strrchr(directory, '/');
    if (slash)
        slash[slash == directory] = '\0';
    r = read_group(&draft, problems, path, &group);
    if (r == 0 && group) {
        r = check_group(&draft, group);
        if (r == 0)
            r = config_check_after_beside(&draft, group, slash ? directory : ".");
        config_group_free(group);
    }
    config_draft_deinit(&draft);
    return r;
}

/* A drop-in alone need not make sense as a whole: only its values can be looked at. */
static int verify_dropin(const char *path, struct config_problems *problems)
{
    struct config_draft draft = CONFIG_DRAFT_NULL;
    struct config_group *group = NULL;
    int r = config_defaults(&group, "dropin");

    if (r < 0)
        return r;
    r = config_draft_init(&draft, &CONFIG_GROUP_SCHEMA, group, problems);
    if (r == 0)
        r = config_draft_read(&draft, path);
    config_draft_deinit(&draft);
    config_group_free(group);
    return r;
}

static int verify_daemon(const char *path, struct config_problems *problems)
{
    struct config_daemon daemon = {0};
    int r = config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &daemon);

    if (r == 0)
        r = read_daemon(&daemon, path, problems);
    config_schema_clear(&CONFIG_DAEMON_SCHEMA, &daemon);
    return r;
}

static int verify_directory(const char *path, struct config_problems *problems)
{
    struct config *config = NULL;
    int r = config_load(&config, path, problems);

    config_free(config);
    return r;
}

int config_verify_file(const char *path, struct config_problems *problems)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n_before = problems->n_problems;
    struct stat status;
    int r;

    if (stat(path, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return verify_directory(path, problems);
    if (strcmp(name, DAEMON_FILE) == 0)
        r = verify_daemon(path, problems);
    else if (config_ends_with(name, GROUP_SUFFIX))
        r = verify_group(path, problems);
    else if (config_ends_with(name, CONFIG_EXCHANGE_SUFFIX))
        r = config_verify_exchange(path, problems);
    else if (config_ends_with(name, DROPIN_SUFFIX))
        r = verify_dropin(path, problems);
    else
        r = config_problem_add(problems, path, 0,
                               "not a configuration file by its name; allowed: " DAEMON_FILE
                               ", NAME" GROUP_SUFFIX ", NAME" CONFIG_EXCHANGE_SUFFIX
                               ", NAME" GROUP_SUFFIX ".d/NAME" DROPIN_SUFFIX);
    return r == 0 && problems->n_problems > n_before ? CONFIG_E_INVALID : r;
}
