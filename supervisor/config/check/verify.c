/* SPDX-License-Identifier: MIT */

/* Checks single files: config_verify_file(). */

#include "supervisor/config/check/check.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int verify_group(const char *path, struct config_problems *problems)
{
    struct config_group *group;
    struct config config = {.groups = &group, .n_groups = 1};
    int r = config_read_group(path, problems, &group);

    if (r == 0 && group)
        r = config_check_references(&group, 1, true);
    if (r == 0 && group)
        r = config_resolve_now(&config, problems);
    config_group_free(group);
    return r;
}

static int verify_file(enum config_kind kind, const char *path, struct config_problems *problems)
{
    void *file;
    struct config config = {.files[CONFIG_SCHEDULE] = {&file, 1}};
    int r = config_file_read(kind, path, problems, &file);

    if (r == 0 && file && kind == CONFIG_SCHEDULE)
        r = config_check_schedules(&config, true);
    if (r == 0 && file && kind == CONFIG_SCHEDULE)
        r = config_resolve_now(&config, problems);
    config_file_free(kind, file);
    return r;
}

/* Checks a drop-in alone: only its values, as it need not be complete. */
static int verify_dropin(const char *path, struct config_problems *problems)
{
    struct config_group *group;
    int r = config_defaults(&group, "dropin");

    if (r < 0)
        return r;
    group->draft = config_draft_new(&CONFIG_GROUP_SCHEMA, group, problems);
    r = group->draft ? config_draft_read(group->draft, path) : -ENOMEM;
    config_group_free(group);
    return r;
}

static int verify_daemon(const char *path, struct config_problems *problems)
{
    struct config *config = calloc(1, sizeof(*config));
    int r;

    if (!config)
        return -ENOMEM;
    r = config_read_daemon(path, problems, config);
    if (r == 0)
        r = config_resolve_now(config, problems);
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
    enum config_kind kind = 0;
    struct stat status;
    int r;

    while (kind < _CONFIG_N_KINDS && !config_ends_with(name, CONFIG_KINDS[kind].suffix))
        kind++;
    if (stat(path, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return verify_directory(path, problems);
    if (strcmp(name, CONFIG_DAEMON_FILE) == 0)
        r = verify_daemon(path, problems);
    else if (config_ends_with(name, CONFIG_GROUP_SUFFIX))
        r = verify_group(path, problems);
    else if (kind < _CONFIG_N_KINDS)
        r = verify_file(kind, path, problems);
    else if (config_ends_with(name, CONFIG_DROPIN_SUFFIX))
        r = verify_dropin(path, problems);
    else
        r = config_problem_add(problems, path, 0,
                               "not a configuration file by its name; allowed: " CONFIG_DAEMON_FILE
                               ", NAME" CONFIG_GROUP_SUFFIX ", NAME" CONFIG_EXCHANGE_SUFFIX
                               ", NAME" CONFIG_SCHEDULE_SUFFIX ", NAME" CONFIG_LIMIT_SUFFIX
                               ", NAME" CONFIG_GROUP_SUFFIX ".d/NAME" CONFIG_DROPIN_SUFFIX);
    return r == 0 && problems->n_problems > n_before ? CONFIG_E_INVALID : r;
}
