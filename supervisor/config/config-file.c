/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-file.h"

#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/types.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- any kind ---- */

void *config_file_free(const struct config_file_kind *kind, void *file)
{
    char **texts = file;

    if (!file)
        return NULL;
    config_schema_clear(kind->schema, file);
    if (kind->clear)
        kind->clear(file);
    free(texts[0]);
    free(texts[1]);
    free(file);
    return NULL;
}

static bool is_name(const struct config_file_kind *kind, const char *name)
{
    return config_name_valid(name) && !strchr(name, '@') && strlen(name) <= kind->name_max;
}

static int read_into(const struct config_file_kind *kind, void *file, const char *path,
                     struct config_problems *problems)
{
    const size_t n_before = problems->n_problems;
    struct config_draft *draft;
    int r = config_schema_defaults(kind->schema, file);

    if (r < 0)
        return r;
    draft = config_draft_new(kind->schema, file, problems);
    r = draft ? config_draft_read(draft, path) : -ENOMEM;
    if (r == 0 && kind->check)
        r = kind->check(file, &draft, problems->n_problems == n_before);
    config_draft_free(draft);
    return r;
}

int config_file_read(const struct config_file_kind *kind, const char *path,
                     struct config_problems *problems, void *ret)
{
    char **file = calloc(1, kind->size);
    bool named = false;
    int r = -ENOMEM;

    if (file && (file[0] = config_stem(path, kind->suffix)) && (file[1] = strdup(path))) {
        named = is_name(kind, file[0]);
        r = named ? read_into(kind, file, path, problems)
                  : config_problem_add(problems, path, 0,
                                       "not a possible name of %s; allowed: up to %u characters "
                                       "of A-Z a-z 0-9 _ . -, the first one a letter or a digit",
                                       kind->noun, kind->name_max);
    }
    if (r < 0 || !named)
        file = config_file_free(kind, file);
    memcpy(ret, &file, sizeof(file));
    return r;
}

/* ---- exchanges ---- */

static const struct config_file_kind EXCHANGE = {
    .schema = &CONFIG_EXCHANGE_SCHEMA,
    .suffix = CONFIG_EXCHANGE_SUFFIX,
    .noun = "an exchange",
    .size = sizeof(struct config_exchange),
    .name_max = CONFIG_GROUP_NAME_MAX,
};

int config_read_exchange(const char *path, struct config_problems *problems,
                         struct config_exchange **ret)
{
    return config_file_read(&EXCHANGE, path, problems, ret);
}

struct config_exchange *config_exchange_free(struct config_exchange *exchange)
{
    return config_file_free(&EXCHANGE, exchange);
}

const struct config_exchange *config_find_exchange(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_exchanges; i++)
        if (strcmp(config->exchanges[i]->name, name) == 0)
            return config->exchanges[i];
    return NULL;
}

/* ---- limits ---- */

static int check_limit(void *file, struct config_draft **draft, bool sound)
{
    struct config_limit *limit = file;

    limit->broken = !sound;
    if (!sound || limit->bounds.rate.n > 0 || limit->bounds.running != CONFIG_UNSET)
        return 0;
    limit->broken = true;
    return config_draft_problem(*draft, "Rate",
                                "[Limit] limits nothing; allowed: Rate= or Running=");
}

static const struct config_file_kind LIMIT = {
    .schema = &CONFIG_LIMIT_SCHEMA,
    .suffix = CONFIG_LIMIT_SUFFIX,
    .noun = "a limit",
    .size = sizeof(struct config_limit),
    .name_max = CONFIG_GROUP_NAME_MAX,
    .check = check_limit,
};

int config_read_limit(const char *path, struct config_problems *problems, struct config_limit **ret)
{
    return config_file_read(&LIMIT, path, problems, ret);
}

struct config_limit *config_limit_free(struct config_limit *limit)
{
    return config_file_free(&LIMIT, limit);
}

const struct config_limit *config_find_limit(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_limits; i++)
        if (strcmp(config->limits[i]->name, name) == 0)
            return config->limits[i];
    return NULL;
}
