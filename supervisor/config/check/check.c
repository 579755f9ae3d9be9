/* SPDX-License-Identifier: MIT */
#include "supervisor/config/check/check.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/sandbox/profile.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int check_program(const struct config_group *group)
{
    if (group->exec_start || config_draft_given(group->draft, "ExecStart"))
        return 0; /* given but wrong: reported already */
    return config_draft_problem(group->draft, "ExecStart",
                                "ExecStart= is missing in [Group]: which program to run");
}

static int check_order(struct config_draft *draft, const char *min_name, usec_t min,
                       const char *max_name, usec_t max)
{
    const char *blamed = config_draft_given(draft, max_name) ? max_name : min_name;

    if (min <= max)
        return 0;
    return config_draft_problem(
        draft, blamed,
        "%s= (%" PRIu64 " ms) is above %s= (%" PRIu64 " ms); allowed: up to %s=", min_name,
        min / USEC_PER_MSEC, max_name, max / USEC_PER_MSEC, max_name);
}

static int check_endpoint(struct config_group *group)
{
    uint32_t size = 1, limit;

    while (size < group->mailbox_size)
        size <<= 1;
    group->mailbox_size = size;
    limit = size / 4;
    if (group->inline_max <= limit)
        return 0;
    /* A small mailbox alone only lowers the default of InlineMax=. */
    if (!config_draft_given(group->draft, "InlineMax")) {
        group->inline_max = limit;
        return 0;
    }
    return config_draft_problem(group->draft, "InlineMax",
                                "InlineMax= (%" PRIu32
                                ") is above a quarter of MailboxSize= (%" PRIu32
                                "); allowed: up to %" PRIu32,
                                group->inline_max, size, limit);
}

/* Only jobs have keys, are durable and are tried again; a spare would run a service twice. */
static int check_service(const struct config_group *group)
{
    const struct {
        bool set;
        const char *key, *problem;
    } keys[] = {
        {group->cells != CONFIG_CELLS_NONE, "Cells",
         "Cells=by-key needs jobs, which a service has none of; allowed: none"},
        {group->durable, "Durable",
         "Durable=yes needs jobs, which a service has none of; allowed: no"},
        {group->on_oom, "OnOom",
         "OnOom= needs jobs, which a service has none of; allowed: nothing"},
        {config_is_elastic(group), "Size",
         "Size= is a range, which needs jobs, and a service has none; allowed: one number"},
        {group->spare > 0, "Spare", "Spare= is above 0; allowed: 0"},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && group->type != CONFIG_ACTOR && i < ELEMENTS(keys); i++)
        if (keys[i].set)
            r = config_draft_problem(group->draft, keys[i].key, "%s, or Type=actor",
                                     keys[i].problem);
    return r;
}

/* Checks PoolMax=. A cell without jobs must have no worker, which it would take from other cells.
 */
static int check_share(const struct config_group *group)
{
    if (group->pool_max == 0 || (group->cells == CONFIG_CELLS_BY_KEY && group->size.low == 0))
        return 0;
    return config_draft_problem(group->draft, "PoolMax",
                                "PoolMax= is shared by cells that have workers only while they "
                                "have jobs; allowed: 0, or Cells=by-key with a Size= from 0 such "
                                "as 0..8");
}

/* In a PID namespace, an orphan becomes the child of its process 1, not of the keeper. CLONE_PARENT
 * of clone(2) would avoid that, but fork() cannot use it, and only fork() runs the handlers of
 * pthread_atfork(3), on which the random generators of libraries rely. */
static int check_template(const struct config_group *group)
{
    if (group->template == CONFIG_TEMPLATE_NO)
        return 0;
    if (group->type != CONFIG_ACTOR)
        return config_draft_problem(group->draft, "Template",
                                    "Template=slot needs jobs or messages, which a service has "
                                    "none of; allowed: no, or Type=actor");
    if (group->spare > 0)
        return config_draft_problem(group->draft, "Template",
                                    "Template=slot needs no spare, as a fork takes milliseconds; "
                                    "allowed: no, or Spare=0");
    if (group->private_pids)
        return config_draft_problem(group->draft, "Template",
                                    "Template=slot cannot fork workers in a PID namespace, which "
                                    "PrivatePIDs=yes and Profile=strict give them; allowed: no, "
                                    "or PrivatePIDs=no");
    return 0;
}

int config_check_group(struct config_group *group)
{
    int r = profile_apply(group);

    if (r == 0)
        r = check_program(group);
    if (r == 0)
        r = check_order(group->draft, "BackoffMinSec", group->backoff_min, "BackoffMaxSec",
                        group->backoff_max);
    if (r == 0)
        r = check_order(group->draft, "MinSec", group->min, "MaxSec", group->max);
    if (r == 0)
        r = check_endpoint(group);
    if (r == 0)
        r = check_service(group);
    if (r == 0)
        r = check_share(group);
    if (r == 0)
        r = check_template(group);
    return r;
}

/* ---- keys without effect ---- */

/* Keys of jobs and messages outside [Jobs]. */
static const char *const OF_ACTORS[] = {
    "Prefetch",   "MaxJobs",          "BatchMax", "MailboxSize", "InlineMax",     "SpinUsec",
    "MailboxMax", "MailboxMemoryMax", "Overflow", "OnCrash",     "MessageRetries"};
static const char *const OF_ELASTIC[] = {"TargetWaitSec", "IdleSec", "MemoryPressureThresholdSec",
                                         "CPUPressureThresholdSec", "IOPressureThresholdSec"};
static const char *const OF_SERVICES[] = {"SuccessExitStatus", "RestartPreventExitStatus"};
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
    if (!config_is_elastic(group) && is_one_of(key->name, OF_ELASTIC, ELEMENTS(OF_ELASTIC)))
        return true;
    if (group->type == CONFIG_ACTOR)
        return is_one_of(key->name, OF_SERVICES, ELEMENTS(OF_SERVICES));
    return strcmp(key->section, "Jobs") == 0 ||
           is_one_of(key->name, OF_ACTORS, ELEMENTS(OF_ACTORS));
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
