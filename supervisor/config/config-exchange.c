/* SPDX-License-Identifier: MIT */

/* Reads NAME.exchange. */

#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/types.h"
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

static bool is_name(const char *name)
{
    return config_name_valid(name) && !strchr(name, '@');
}

static int read_exchange(struct config_exchange *exchange, struct config_problems *problems)
{
    struct config_draft *draft;
    int r = config_schema_defaults(&CONFIG_EXCHANGE_SCHEMA, exchange);

    if (r < 0)
        return r;
    draft = config_draft_new(&CONFIG_EXCHANGE_SCHEMA, exchange, problems);
    r = draft ? config_draft_read(draft, exchange->path) : -ENOMEM;
    config_draft_free(draft);
    return r;
}

int config_read_exchange(const char *path, struct config_problems *problems,
                         struct config_exchange **ret)
{
    struct config_exchange *exchange = calloc(1, sizeof(*exchange));
    int r;

    *ret = NULL;
    if (!exchange)
        return -ENOMEM;
    exchange->name = config_stem(path, CONFIG_EXCHANGE_SUFFIX);
    exchange->path = strdup(path);
    if (!exchange->name || !exchange->path)
        r = -ENOMEM;
    else if (is_name(exchange->name))
        r = read_exchange(exchange, problems);
    else
        r = config_problem_add(problems, path, 0,
                               "not a possible name of an exchange; allowed: up to %d characters "
                               "of A-Z a-z 0-9 _ . -, the first one a letter or a digit",
                               CONFIG_GROUP_NAME_MAX);
    if (r == 0 && is_name(exchange->name))
        *ret = exchange;
    else
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
