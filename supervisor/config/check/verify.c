/* SPDX-License-Identifier: MIT */

/* Checks single files: config_verify_file(). */

#include "shared/base/cleanup.h"
#include "supervisor/config/check/check.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-exchange.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config-problem.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int verify_on_this_machine(struct config_draft *draft, struct config_group *group,
                                  struct config_problems *problems)
{
    struct names names = NAMES_NULL;
    int r;

    group->draft = config_draft_keep(draft);
    r = group->draft ? config_want_group_names(group, &names) : -ENOMEM;
    if (r == 0)
        r = names_look_up(&names);
    if (r == 0)
        r = config_resolve_group(group, &names, problems);
    names_deinit(&names);
    return r;
}

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
    r = config_read_group(&draft, problems, path, &group);
    if (r == 0 && group) {
        r = config_check_read(&draft, group);
        if (r == 0)
            r = config_check_after_beside(&draft, group, slash ? directory : ".");
        if (r == 0 && draft.paths)
            r = verify_on_this_machine(&draft, group, problems);
        config_group_free(group);
    }
    config_draft_deinit(&draft);
    return r;
}

/* Checks a drop-in alone: only its values, as it need not be complete. */
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
    struct config *config = calloc(1, sizeof(*config));
    struct config_draft draft = CONFIG_DRAFT_NULL;
    struct names names = NAMES_NULL;
    int r;

    if (!config)
        return -ENOMEM;
    r = config_schema_defaults(&CONFIG_DAEMON_SCHEMA, &config->daemon);
    if (r == 0)
        r = config_read_daemon(&draft, &config->daemon, path, problems);
    if (r == 0 && draft.paths && !(config->daemon_draft = config_draft_keep(&draft)))
        r = -ENOMEM;
    if (r == 0)
        r = config_want_names(config, &names);
    if (r == 0)
        r = names_look_up(&names);
    if (r == 0)
        r = config_resolve(config, &names, problems);
    names_deinit(&names);
    config_draft_deinit(&draft);
    config_free(config);
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
    if (strcmp(name, CONFIG_DAEMON_FILE) == 0)
        r = verify_daemon(path, problems);
    else if (config_ends_with(name, CONFIG_GROUP_SUFFIX))
        r = verify_group(path, problems);
    else if (config_ends_with(name, CONFIG_EXCHANGE_SUFFIX))
        r = config_verify_exchange(path, problems);
    else if (config_ends_with(name, CONFIG_DROPIN_SUFFIX))
        r = verify_dropin(path, problems);
    else
        r = config_problem_add(problems, path, 0,
                               "not a configuration file by its name; allowed: " CONFIG_DAEMON_FILE
                               ", NAME" CONFIG_GROUP_SUFFIX ", NAME" CONFIG_EXCHANGE_SUFFIX
                               ", NAME" CONFIG_GROUP_SUFFIX ".d/NAME" CONFIG_DROPIN_SUFFIX);
    return r == 0 && problems->n_problems > n_before ? CONFIG_E_INVALID : r;
}
