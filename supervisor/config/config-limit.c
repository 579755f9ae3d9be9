/* SPDX-License-Identifier: MIT */

/* Reads NAME.limit. */

#include "supervisor/config/config-limit.h"

#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/types.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct config_limit *config_limit_free(struct config_limit *limit)
{
    if (!limit)
        return NULL;
    config_schema_clear(&CONFIG_LIMIT_SCHEMA, limit);
    free(limit->name);
    free(limit->path);
    free(limit);
    return NULL;
}

static bool is_name(const char *name)
{
    return config_name_valid(name) && !strchr(name, '@');
}

static int check_bounds(const struct config_limit *limit, struct config_draft *draft)
{
    if (limit->bounds.rate.n > 0 || limit->bounds.running != CONFIG_UNSET)
        return 0;
    return config_draft_problem(draft, "Rate",
                                "[Limit] limits nothing; allowed: Rate= or Running=");
}

static int read_limit(struct config_limit *limit, struct config_problems *problems)
{
    const size_t n_before = problems->n_problems;
    struct config_draft *draft;
    int r = config_schema_defaults(&CONFIG_LIMIT_SCHEMA, limit);

    if (r < 0)
        return r;
    draft = config_draft_new(&CONFIG_LIMIT_SCHEMA, limit, problems);
    r = draft ? config_draft_read(draft, limit->path) : -ENOMEM;
    if (r == 0 && problems->n_problems == n_before)
        r = check_bounds(limit, draft);
    config_draft_free(draft);
    limit->broken = problems->n_problems > n_before;
    return r;
}

int config_read_limit(const char *path, struct config_problems *problems, struct config_limit **ret)
{
    struct config_limit *limit = calloc(1, sizeof(*limit));
    int r;

    *ret = NULL;
    if (!limit)
        return -ENOMEM;
    limit->name = config_stem(path, CONFIG_LIMIT_SUFFIX);
    limit->path = strdup(path);
    if (!limit->name || !limit->path)
        r = -ENOMEM;
    else if (is_name(limit->name))
        r = read_limit(limit, problems);
    else
        r = config_problem_add(problems, path, 0,
                               "not a possible name of a limit; allowed: up to %d characters "
                               "of A-Z a-z 0-9 _ . -, the first one a letter or a digit",
                               CONFIG_GROUP_NAME_MAX);
    if (r == 0 && is_name(limit->name))
        *ret = limit;
    else
        config_limit_free(limit);
    return r;
}

const struct config_limit *config_find_limit(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_limits; i++)
        if (strcmp(config->limits[i]->name, name) == 0)
            return config->limits[i];
    return NULL;
}
