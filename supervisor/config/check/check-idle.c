/* SPDX-License-Identifier: MIT */

/* Finds given keys that have no effect. They are not mistakes: drop-ins may give them for groups of
 * all types. */

#include "shared/base/cleanup.h"
#include "supervisor/config/check/check.h"
#include "supervisor/config/keys/draft.h"
#include <stdio.h>
#include <string.h>

/* Keys of jobs and messages outside [Jobs]. */
static const char *const OF_ACTORS[] = {
    "Prefetch",   "MaxJobs",          "BatchMax", "MailboxSize", "InlineMax",     "SpinUsec",
    "MailboxMax", "MailboxMemoryMax", "Overflow", "OnCrash",     "MessageRetries"};
static const char *const OF_CELLS[] = {"CellsMax", "CellIdleSec", "CellsQueueMemoryMax"};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_idle(const struct config_group *group, const struct config_key *key)
{
    if (group->cells == CONFIG_CELLS_NONE && is_one_of(key->name, OF_CELLS, ELEMENTS(OF_CELLS)))
        return true;
    return group->type != CONFIG_ACTOR && (strcmp(key->section, "Jobs") == 0 ||
                                           is_one_of(key->name, OF_ACTORS, ELEMENTS(OF_ACTORS)));
}

size_t config_idle_keys(const struct config_group *group, char *buffer, size_t size)
{
    const struct config_schema *schema = &CONFIG_GROUP_SCHEMA;
    size_t n = 0, used = 0;

    *buffer = '\0';
    for (size_t i = 0; i < schema->n_keys; i++) {
        const struct config_key *key = &schema->keys[i];

        if (!config_draft_given(group->draft, key->name) || !is_idle(group, key))
            continue;
        if (used < size)
            used +=
                (size_t)snprintf(buffer + used, size - used, "%s%s=", n > 0 ? ", " : "", key->name);
        n++;
    }
    return n;
}
