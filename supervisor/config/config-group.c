/* SPDX-License-Identifier: MIT */
#include "supervisor/config/config-group.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/keys/keys.h"
#include "supervisor/config/keys/types.h"
#include "supervisor/config/sandbox/files-compile.h"
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/words.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct config_group *config_group_free(struct config_group *group)
{
    if (!group)
        return NULL;
    config_schema_clear(&CONFIG_GROUP_SCHEMA, group);
    config_draft_free(group->draft);
    config_group_free(group->next);
    sandbox_free(group->sandbox);
    files_free(group->sandbox_files);
    network_free(group->network);
    strv_free(group->user_environment);
    free(group->groups);
    free(group->fault);
    free(group->name);
    free(group->path);
    free(group);
    return NULL;
}

int config_defaults(struct config_group **ret, const char *name)
{
    struct config_group *group;

    if (!config_name_valid(name))
        return -EINVAL;
    group = calloc(1, sizeof(*group));
    if (!group)
        return -ENOMEM;
    group->name = strdup(name);
    group->uid = geteuid();
    group->gid = getegid();
    if (!group->name || config_schema_defaults(&CONFIG_GROUP_SCHEMA, group) < 0) {
        config_group_free(group);
        return -ENOMEM;
    }
    *ret = group;
    return 0;
}

/* The user database may have given a name another number, or a user other groups. */
static bool same_ids(const struct config_group *a, const struct config_group *b)
{
    return a->uid == b->uid && a->gid == b->gid && a->n_groups == b->n_groups &&
           (a->n_groups == 0 ||
            memcmp(a->groups, b->groups, a->n_groups * sizeof(*a->groups)) == 0);
}

bool config_group_same_process(const struct config_group *a, const struct config_group *b)
{
    return same_ids(a, b) && config_schema_equal(&CONFIG_GROUP_SCHEMA, a, b, true);
}

int config_group_set_digest(struct config_group *group)
{
    const uint64_t ids[] = {group->uid, group->gid};
    struct config_group *defaults;
    uint64_t digest;
    int r = config_defaults(&defaults, group->name);

    if (r < 0)
        return r;
    digest = digest_bytes(DIGEST_NONE, ids, sizeof(ids));
    digest = digest_bytes(digest, group->groups, group->n_groups * sizeof(*group->groups));
    digest = config_schema_digest(&CONFIG_GROUP_SCHEMA, group, defaults, digest);
    config_group_free(defaults);
    group->process_digest = (uint32_t)(digest ^ digest >> 32);
    if (group->process_digest == 0)
        group->process_digest = 1;
    return 0;
}

bool config_group_equal(const struct config_group *a, const struct config_group *b)
{
    return strcmp(a->name, b->name) == 0 && same_ids(a, b) &&
           config_schema_equal(&CONFIG_GROUP_SCHEMA, a, b, false);
}

int config_expand_argv(const struct config_group *group, unsigned slot, config_strv *ret)
{
    size_t n = strv_length(group->exec_start);
    _cleanup_strv_ char **argv = calloc(n + 1, sizeof(char *));

    if (!argv)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r = words_expand(group->exec_start[i], group->name, slot, &argv[i]);

        if (r < 0)
            return r;
    }
    *ret = TAKE_PTR(argv);
    return 0;
}
