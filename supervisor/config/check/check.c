/* SPDX-License-Identifier: MIT */
#include "supervisor/config/check/check.h"

#include "supervisor/config/keys/draft.h"
#include "supervisor/config/sandbox/profile.h"
#include <inttypes.h>

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

/* Only jobs have keys. */
static int check_cells(const struct config_group *group)
{
    if (group->cells == CONFIG_CELLS_NONE || group->type == CONFIG_ACTOR)
        return 0;
    return config_draft_problem(group->draft, "Cells",
                                "Cells=by-key needs jobs, which a service has none of; allowed: "
                                "none, or Type=actor");
}

/* Only jobs are durable. */
static int check_durable(const struct config_group *group)
{
    if (!group->durable || group->type == CONFIG_ACTOR)
        return 0;
    return config_draft_problem(group->draft, "Durable",
                                "Durable=yes needs jobs, which a service has none of; allowed: "
                                "no, or Type=actor");
}

/* Only jobs are tried again. */
static int check_oom_type(const struct config_group *group)
{
    if (!group->on_oom || group->type == CONFIG_ACTOR)
        return 0;
    return config_draft_problem(group->draft, "OnOom",
                                "OnOom= needs jobs, which a service has none of; allowed: "
                                "nothing, or Type=actor");
}

/* A spare would run a service twice. */
static int check_spare(const struct config_group *group)
{
    if (group->spare == 0 || group->type == CONFIG_ACTOR)
        return 0;
    return config_draft_problem(group->draft, "Spare",
                                "Spare= is above 0, which needs Type=actor; allowed: 0");
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
        r = check_cells(group);
    if (r == 0)
        r = check_durable(group);
    if (r == 0)
        r = check_oom_type(group);
    if (r == 0)
        r = check_spare(group);
    return r;
}
