/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-file.h"

#include "shared/base/list.h"
#include "supervisor/config/config-directory.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/config.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/keys.h"
#include "supervisor/config/keys/types.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check_limit(struct config_file *file, struct config_draft **draft)
{
    const struct config_limit *limit = list_entry(file, struct config_limit, file);

    if (file->broken || limit->bounds.rate.n > 0 || limit->bounds.running != CONFIG_UNSET)
        return 0;
    return config_draft_problem(*draft, "Rate",
                                "[Limit] limits nothing; allowed: Rate= or Running=");
}

const struct config_file_kind CONFIG_KINDS[_CONFIG_N_KINDS] = {
    [CONFIG_EXCHANGE] =
        {
            .schema = &CONFIG_EXCHANGE_SCHEMA,
            .suffix = CONFIG_EXCHANGE_SUFFIX,
            .noun = "an exchange",
            .size = sizeof(struct config_exchange),
            .name_max = CONFIG_GROUP_NAME_MAX,
            .clash = ": groups and exchanges share one name space",
        },
    [CONFIG_SCHEDULE] =
        {
            .schema = &CONFIG_SCHEDULE_SCHEMA,
            .suffix = CONFIG_SCHEDULE_SUFFIX,
            .noun = "a schedule",
            .size = sizeof(struct config_schedule),
            .name_max = CONFIG_SCHEDULE_NAME_MAX,
            .check = config_schedule_check,
            .clear = config_schedule_clear,
        },
    [CONFIG_LIMIT] =
        {
            .schema = &CONFIG_LIMIT_SCHEMA,
            .suffix = CONFIG_LIMIT_SUFFIX,
            .noun = "a limit",
            .size = sizeof(struct config_limit),
            .name_max = CONFIG_GROUP_NAME_MAX,
            .clash = ", whose own limits are in its section [Limits]; allowed: another name",
            .check = check_limit,
        },
};

void *config_file_free(enum config_kind kind, void *file)
{
    struct config_file *head = file;

    if (!file)
        return NULL;
    config_schema_clear(CONFIG_KINDS[kind].schema, file);
    if (CONFIG_KINDS[kind].clear)
        CONFIG_KINDS[kind].clear(head);
    free(head->name);
    free(head->path);
    free(file);
    return NULL;
}

static bool is_name(const struct config_file_kind *kind, const char *name)
{
    return config_name_valid(name) && !strchr(name, '@') && strlen(name) <= kind->name_max;
}

static int read_into(const struct config_file_kind *kind, struct config_file *file,
                     struct config_problems *problems)
{
    const size_t n_before = problems->n_problems;
    struct config_draft *draft;
    int r = config_schema_defaults(kind->schema, file);

    if (r < 0)
        return r;
    draft = config_draft_new(kind->schema, file, problems);
    r = draft ? config_draft_read(draft, file->path) : -ENOMEM;
    file->broken = problems->n_problems > n_before;
    if (r == 0 && kind->check)
        r = kind->check(file, &draft);
    file->broken = problems->n_problems > n_before;
    config_draft_free(draft);
    return r;
}

int config_file_read(enum config_kind number, const char *path, struct config_problems *problems,
                     void *ret)
{
    const struct config_file_kind *kind = &CONFIG_KINDS[number];
    struct config_file *file = calloc(1, kind->size);
    bool named = false;
    int r = -ENOMEM;

    if (file && (file->name = config_stem(path, kind->suffix)) && (file->path = strdup(path))) {
        named = is_name(kind, file->name);
        r = named ? read_into(kind, file, problems)
                  : config_problem_add(problems, path, 0,
                                       "not a possible name of %s; allowed: up to %u characters "
                                       "of A-Z a-z 0-9 _ . -, the first one a letter or a digit",
                                       kind->noun, kind->name_max);
    }
    if (r < 0 || !named)
        file = config_file_free(number, file);
    memcpy(ret, &file, sizeof(file));
    return r;
}

static int compare_name(const void *name, const void *element)
{
    const struct config_file *const *file = element;

    return strcmp(name, (*file)->name);
}

const void *config_find_file(const struct config *config, enum config_kind kind, const char *name)
{
    const struct config_files *files = &config->files[kind];
    void **found = files->n > 0
                       ? bsearch(name, files->all, files->n, sizeof(*files->all), compare_name)
                       : NULL;

    return found ? *found : NULL;
}
