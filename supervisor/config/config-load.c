/* SPDX-License-Identifier: MIT */

/* Reads a configuration directory: config_read(), config_load(), config_free(). */

#include "supervisor/config/config-load.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/config/check/check.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/syntax/strings.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loader {
    struct config *config;
    struct config_problems *problems;
    const char *directory;
    enum config_kind kind; /* that is read now */
};

/* ---- groups ---- */

static int read_dropin(void *userdata, const char *path)
{
    return config_draft_read(userdata, path);
}

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
    return r < 0 ? r : config_each_file(directory, names, "", draft->problems, read_dropin, draft);
}

static int read_files(struct config_group *group, struct config_problems *problems)
{
    int r;

    group->draft = config_draft_new(&CONFIG_GROUP_SCHEMA, group, problems);
    if (!group->draft)
        return -ENOMEM;
    r = config_draft_read(group->draft, group->path);
    if (r < 0 || !group->draft->paths)
        return r;
    r = read_dropins(group->draft, group->path);
    return r < 0 ? r : config_check_group(group);
}

int config_read_group(const char *path, struct config_problems *problems, struct config_group **ret)
{
    _cleanup_free_ char *name = config_stem(path, CONFIG_GROUP_SUFFIX);
    struct config_group *group = NULL;
    int r = name ? config_defaults(&group, name) : -ENOMEM;

    *ret = NULL;
    if (r == -EINVAL)
        return config_problem_add(problems, path, 0,
                                  "not a possible name of a group; allowed: up to %d characters of "
                                  "A-Z a-z 0-9 _ . @ -, the first one a letter or a digit",
                                  CONFIG_GROUP_NAME_MAX);
    if (r < 0)
        return r;
    group->path = strdup(path);
    r = group->path ? read_files(group, problems) : -ENOMEM;
    if (r < 0)
        config_group_free(group);
    else
        *ret = group;
    return r;
}

/* Marks a group whose files have a mistake, so that only some keys are known. Returns 0 or -ENOMEM.
 */
static int mark_unread(struct config_group *group, const struct config_problem *problem)
{
    char text[CONFIG_PROBLEM_MAX];

    config_problem_print(text, sizeof(text), problem);
    free(group->fault);
    group->fault = strdup(text);
    group->unread = true;
    return group->fault ? 0 : -ENOMEM;
}

int config_read_group_alone(const char *path, struct config_group **ret)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r = config_read_group(path, &problems, ret);

    if (r == 0 && *ret)
        r = config_check_references(ret, 1, true);
    if (r == 0 && *ret && problems.n_problems > 0)
        r = mark_unread(*ret, problems.problems);
    if (*ret)
        (*ret)->draft->problems = NULL;
    if (r < 0)
        *ret = config_group_free(*ret);
    config_problems_deinit(&problems);
    return r;
}

int config_recall_group(const char *name, const char *path, const char *text, size_t size,
                        struct config_group **ret)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_group *group;
    int r = config_defaults(&group, name);

    *ret = NULL;
    if (r < 0)
        return r;
    group->path = strdup(path);
    group->draft = config_draft_new(&CONFIG_GROUP_SCHEMA, group, &problems);
    r = group->path && group->draft ? config_draft_parse(group->draft, group->path, text, size)
                                    : -ENOMEM;
    if (r == 0)
        r = config_check_group(group);
    if (group->draft)
        group->draft->problems = NULL;
    if (r == 0 && problems.n_problems == 0)
        *ret = group;
    else
        config_group_free(group);
    config_problems_deinit(&problems);
    return r;
}

void config_refuse_other_kind(const struct config_group *before, struct config_group *group)
{
    if (group->unread || (group->type == before->type && group->cells == before->cells))
        return;
    free(group->fault);
    group->fault = strdup("Type= or Cells= has changed: run troupectl reload");
    group->unread = true;
}

static int load_group(void *userdata, const char *path)
{
    struct loader *loader = userdata;
    struct config_group *group;
    int r = config_read_group(path, loader->problems, &group);

    if (r == 0 && group)
        loader->config->groups[loader->config->n_groups++] = group;
    return r;
}

/* Warns of drop-in directories without a group. `names` are sorted, as the stems are. */
static int warn_of_orphans(const struct loader *loader, config_strv names)
{
    _cleanup_strv_ config_strv stems = NULL;
    int r = config_list_stems(loader->directory, CONFIG_GROUP_SUFFIX ".d", &stems);

    for (size_t i = 0; r == 0 && stems && stems[i]; i++) {
        while (names && *names && strcmp(*names, stems[i]) < 0)
            names++;
        if (!names || !*names || strcmp(*names, stems[i]) != 0)
            log_warning("%s/%s" CONFIG_GROUP_SUFFIX
                        ".d is ignored: there is no %s" CONFIG_GROUP_SUFFIX " beside it",
                        loader->directory, stems[i], stems[i]);
    }
    return r;
}

static int load_groups(struct loader *loader)
{
    struct config *config = loader->config;
    _cleanup_strv_ config_strv names = NULL;
    int r = config_list_stems(loader->directory, CONFIG_GROUP_SUFFIX, &names);

    if (r < 0)
        return r;
    config->groups = calloc(strv_length(names) + 1, sizeof(*config->groups));
    if (!config->groups)
        return -ENOMEM;
    r = config_each_file(loader->directory, names, CONFIG_GROUP_SUFFIX, loader->problems,
                         load_group, loader);
    if (r == 0)
        r = warn_of_orphans(loader, names);
    return r < 0 ? r : config_check_references(config->groups, config->n_groups, false);
}

static int compare_name(const void *name, const void *element)
{
    const struct config_group *const *group = element;

    return strcmp(name, (*group)->name);
}

const struct config_group *config_find_group(const struct config *config, const char *name)
{
    struct config_group **found =
        config->n_groups > 0
            ? bsearch(name, config->groups, config->n_groups, sizeof(*config->groups), compare_name)
            : NULL;

    return found ? *found : NULL;
}

int config_add_group(struct config *config, struct config_group *group)
{
    const size_t size = (config->n_groups + 1) * sizeof(*config->groups);
    struct config_group **groups = realloc(config->groups, size);
    size_t at = config->n_groups;

    if (!groups)
        return -ENOMEM;
    for (; at > 0 && strcmp(groups[at - 1]->name, group->name) > 0; at--)
        groups[at] = groups[at - 1];
    groups[at] = group;
    config->groups = groups;
    config->n_groups++;
    return 0;
}

/* ---- exchanges, schedules and limits ---- */

static int load_file(void *userdata, const char *path)
{
    struct loader *loader = userdata;
    struct config_files *files = &loader->config->files[loader->kind];
    const char *clash = CONFIG_KINDS[loader->kind].clash;
    struct config_file *file;
    int r = config_file_read(loader->kind, path, loader->problems, &file);

    if (r < 0 || !file)
        return r;
    files->all[files->n++] = file;
    if (!clash || !config_find_group(loader->config, file->name))
        return 0;
    file->broken = true;
    return config_problem_add(loader->problems, path, 0,
                              "there is a group of that name (%s.group)%s", file->name, clash);
}

static int load_files(struct loader *loader, enum config_kind kind)
{
    const char *suffix = CONFIG_KINDS[kind].suffix;
    _cleanup_strv_ config_strv names = NULL;
    int r = config_list_stems(loader->directory, suffix, &names);

    if (r < 0)
        return r;
    loader->kind = kind;
    loader->config->files[kind].all = calloc(strv_length(names) + 1, sizeof(void *));
    if (!loader->config->files[kind].all)
        return -ENOMEM;
    return config_each_file(loader->directory, names, suffix, loader->problems, load_file, loader);
}

/* ---- the daemon ---- */

int config_read_daemon(const char *path, struct config_problems *problems, struct config *config)
{
    int r = config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &config->daemon);

    if (r < 0)
        return r;
    config->daemon_draft = config_draft_new(&CONFIG_DAEMON_SCHEMA, &config->daemon, problems);
    return config->daemon_draft ? config_draft_read(config->daemon_draft, path) : -ENOMEM;
}

static int load_daemon(struct loader *loader)
{
    _cleanup_free_ char *path = path_join(loader->directory, CONFIG_DAEMON_FILE, "");
    int r = path ? config_read_daemon(path, loader->problems, loader->config) : -ENOMEM;

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

const struct config_group *config_group_of_problem(const struct config *config,
                                                   const char *directory,
                                                   const struct config_problem *problem)
{
    for (size_t i = 0; i < config->n_groups; i++)
        if (config_problem_is_of(problem, directory, config->groups[i]->name, CONFIG_GROUP_SUFFIX))
            return config->groups[i];
    return NULL;
}

static const struct config_problem *first_problem(const struct loader *loader, const char *name,
                                                  const char *suffix)
{
    for (size_t i = 0; i < loader->problems->n_problems; i++)
        if (config_problem_is_of(&loader->problems->problems[i], loader->directory, name, suffix))
            return &loader->problems->problems[i];
    return NULL;
}

static void mark_broken(const struct loader *loader, enum config_kind kind)
{
    const struct config_files *files = &loader->config->files[kind];

    for (size_t i = 0; i < files->n; i++) {
        struct config_file *file = files->all[i];

        file->broken |= first_problem(loader, file->name, CONFIG_KINDS[kind].suffix) != NULL;
    }
}

void config_remove_broken(struct config *config, enum config_kind kind)
{
    struct config_files *files = &config->files[kind];
    size_t n = 0;

    for (size_t i = 0; i < files->n; i++) {
        const struct config_file *file = files->all[i];

        if (file->broken)
            config_file_free(kind, files->all[i]);
        else
            files->all[n++] = files->all[i];
    }
    files->n = n;
}

/* Marks the groups that have a problem, and removes other files. Returns 0 or -ENOMEM. */
static int set_aside_broken(const struct loader *loader)
{
    struct config *config = loader->config;
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++) {
        const struct config_problem *problem =
            first_problem(loader, config->groups[i]->name, CONFIG_GROUP_SUFFIX);

        if (problem)
            r = mark_unread(config->groups[i], problem);
    }
    for (enum config_kind kind = 0; kind < _CONFIG_N_KINDS; kind++) {
        mark_broken(loader, kind);
        config_remove_broken(config, kind);
    }
    return r;
}

/* Like config_read(), but also keeps what has a problem. */
static int read_all(struct loader *loader)
{
    size_t n_before = loader->problems->n_problems;
    struct config *config = calloc(1, sizeof(*config));
    int r;

    loader->config = config;
    if (!config)
        return -ENOMEM;
    r = load_daemon(loader);
    if (r == 0)
        r = load_groups(loader);
    if (r == 0)
        r = load_files(loader, CONFIG_EXCHANGE);
    if (r == 0)
        r = load_files(loader, CONFIG_SCHEDULE);
    if (r == 0)
        r = config_check_schedules(config, false);
    if (r == 0)
        r = load_files(loader, CONFIG_LIMIT);
    if (r == 0)
        r = config_check_uses(config);
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

    if (r == CONFIG_E_INVALID && set_aside_broken(&loader) < 0) {
        config_free(loader.config);
        return -ENOMEM;
    }
    if (r >= 0)
        *ret = loader.config;
    return r;
}

int config_empty(struct config **ret)
{
    struct config *config = calloc(1, sizeof(*config));
    int r = config ? config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &config->daemon) : -ENOMEM;

    if (r < 0)
        config_free(config);
    else
        *ret = config;
    return r;
}

int config_load(struct config **ret, const char *directory, struct config_problems *problems)
{
    struct loader loader = {.problems = problems, .directory = directory};
    size_t n_before = problems->n_problems;
    int r = read_all(&loader);

    if (r >= 0)
        r = config_resolve_now(loader.config, problems);
    if (r == 0 && problems->n_problems > n_before)
        r = CONFIG_E_INVALID;
    if (r == 0)
        *ret = loader.config;
    else
        config_free(loader.config);
    return r;
}

struct config *config_free(struct config *config)
{
    if (!config)
        return NULL;
    for (size_t i = 0; i < config->n_groups; i++)
        config_group_free(config->groups[i]);
    free(config->groups);
    for (enum config_kind kind = 0; kind < _CONFIG_N_KINDS; kind++) {
        for (size_t i = 0; i < config->files[kind].n; i++)
            config_file_free(kind, config->files[kind].all[i]);
        free(config->files[kind].all);
    }
    config_schema_clear(&CONFIG_DAEMON_SCHEMA, &config->daemon);
    config_draft_free(config->daemon_draft);
    free(config);
    return NULL;
}
