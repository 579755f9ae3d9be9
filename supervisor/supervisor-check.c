/* SPDX-License-Identifier: MIT */

/* Checks whether a supervisor could start: `trouped --check`. It changes nothing, and another one
 * may run meanwhile. */

#include "shared/base/cleanup.h"
#include "supervisor/store/database.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool needs_store(const struct config *config)
{
    for (size_t i = 0; i < config->n_groups; i++)
        if (config->groups[i]->durable)
            return true;
    return false;
}

/* A supervisor also starts if the store is damaged or missing; but none of this version could take
 * durable jobs over from a newer one. */
static int check_store(const struct config *config)
{
    char problem[DATABASE_PROBLEM_MAX];
    _cleanup_free_ char *path = NULL;
    int r;

    if (!needs_store(config))
        return 0;
    path = supervisor_store_path(&config->daemon);
    if (!path)
        return -ENOMEM;
    r = database_check_format(path, problem);
    if (r < 0)
        log_error("%s", problem);
    return r;
}

/* A mistake in a group's files is no error: the supervisor starts without that group. */
static int check_config(const char *directory, struct config **ret)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    int r = config_read(ret, directory, &problems);

    reload_log_problems(&problems);
    if (r < 0)
        log_error("%s: cannot read the configuration: %s", directory, strerror(-r));
    for (size_t i = 0; r > 0 && i < problems.n_problems; i++)
        if (!config_group_of_problem(*ret, directory, &problems.problems[i]))
            r = -EINVAL;
    config_problems_deinit(&problems);
    return r < 0 ? r : 0;
}

int supervisor_check(const struct supervisor_options *options)
{
    struct config *config = NULL;
    int r = check_config(options->config_directory, &config);

    if (r == 0)
        r = check_store(config);
    if (r == 0)
        printf("trouped " TROUPE_VERSION ": ok\n");
    config_free(config);
    return r;
}
