/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-exchange.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/types.h"
#include "supervisor/config/syntax/strv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct config_exchange *config_exchange_free(struct config_exchange *exchange)
{
    if (!exchange)
        return NULL;
    config_schema_clear(&CONFIG_EXCHANGE_SCHEMA, exchange);
    free(exchange->name);
    free(exchange->path);
    free(exchange);
    return NULL;
}

static int exchange_new(struct config_exchange **ret, const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    struct config_exchange *exchange = calloc(1, sizeof(*exchange));

    if (!exchange)
        return -ENOMEM;
    exchange->name = strndup(file, strlen(file) - strlen(CONFIG_EXCHANGE_SUFFIX));
    exchange->path = strdup(path);
    if (!exchange->name || !exchange->path ||
        config_schema_defaults(&CONFIG_EXCHANGE_SCHEMA, exchange) < 0) {
        config_exchange_free(exchange);
        return -ENOMEM;
    }
    *ret = exchange;
    return 0;
}

/* 0 with `*ret` (NULL where the name is not one), or -errno. */
static int read_exchange(struct config_problems *problems, const char *path,
                         struct config_exchange **ret)
{
    struct config_draft draft = CONFIG_DRAFT_NULL;
    struct config_exchange *exchange = NULL;
    int r;

    *ret = NULL;
    r = exchange_new(&exchange, path);
    if (r < 0)
        return r;
    if (!config_name_valid(exchange->name) || strchr(exchange->name, '@')) {
        config_exchange_free(exchange);
        return config_problem_add(problems, path, 0,
                                  "not a possible name of an exchange; allowed: up to %d "
                                  "characters of A-Z a-z 0-9 _ . -, the first one a letter or a "
                                  "digit",
                                  CONFIG_GROUP_NAME_MAX);
    }
    r = config_draft_init(&draft, &CONFIG_EXCHANGE_SCHEMA, exchange, problems);
    if (r == 0)
        r = config_draft_read(&draft, path);
    if (r == 0)
        config_draft_deinit(&draft);
    if (r < 0)
        config_exchange_free(exchange);
    else
        *ret = exchange;
    return r;
}

static int compare_name(const void *name, const void *element)
{
    const struct config_group *const *group = element;

    return strcmp(name, (*group)->name);
}

static int check_clash(const struct config *config, const struct config_exchange *exchange,
                       struct config_problems *problems)
{
    if (!bsearch(exchange->name, config->groups, config->n_groups, sizeof(*config->groups),
                 compare_name))
        return 0;
    return config_problem_add(
        problems, exchange->path, 0,
        "there is a group of that name (%s.group): groups and exchanges share "
        "one name space",
        exchange->name);
}

static int load_one(struct config *config, const char *directory, const char *name,
                    struct config_problems *problems)
{
    _cleanup_free_ char *path = NULL;
    struct config_exchange *exchange = NULL;
    int r;

    r = config_join(&path, directory, name, CONFIG_EXCHANGE_SUFFIX);
    if (r == 0)
        r = read_exchange(problems, path, &exchange);
    if (r == -ENOENT)
        return config_problem_add(problems, path, 0, "no such file");
    if (r < 0 || !exchange)
        return r;
    config->exchanges[config->n_exchanges++] = exchange;
    return check_clash(config, exchange, problems);
}

int config_load_exchanges(struct config *config, const char *directory,
                          struct config_problems *problems)
{
    _cleanup_strv_ config_strv names = NULL;
    int r = config_list_stems(directory, CONFIG_EXCHANGE_SUFFIX, &names);

    if (r < 0)
        return r;
    config->exchanges =
        calloc(strv_length((const char *const *)names) + 1, sizeof(struct config_exchange *));
    if (!config->exchanges)
        return -ENOMEM;
    for (char **name = names; r == 0 && name && *name; name++)
        r = load_one(config, directory, *name, problems);
    return r;
}

int config_verify_exchange(const char *path, struct config_problems *problems)
{
    struct config_exchange *exchange = NULL;
    int r = read_exchange(problems, path, &exchange);

    if (r == 0)
        config_exchange_free(exchange);
    return r;
}

const struct config_exchange *config_find_exchange(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_exchanges; i++)
        if (strcmp(config->exchanges[i]->name, name) == 0)
            return config->exchanges[i];
    return NULL;
}
