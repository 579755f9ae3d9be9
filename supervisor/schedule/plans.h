/* SPDX-License-Identifier: MIT */
#pragma once

/* All schedules, and their rows in the store. */

#include "shared/base/handle-table.h"
#include "supervisor/config/config.h"
#include "supervisor/group/group-context.h"
#include "supervisor/schedule/plan.h"
#include "supervisor/store/settings.h"
#include <stdbool.h>
#include <stddef.h>

struct plans {
    struct plan_context context;
    struct work_queue steps;
    struct plan **sorted; /* by name */
    size_t n_plans;
    struct handle_table handles; /* of the same, for lists */
    bool begun;                  /* the rows are known, or will never be */
    struct settings earlier;     /* rows of earlier runs with which no schedule has begun */
};

/* {0} has no schedules. `groups` and `kept` outlive them. */
void plans_init(struct plans *plans, const struct group_context *groups, struct kept_states *kept);
void plans_deinit(struct plans *plans);

/* Returns NULL if there is no such schedule. */
struct plan *plans_find(const struct plans *plans, const char *name);

/* Takes over the schedules of a configuration. Appends their files to `added`, `changed` and
 * `removed` (NULL = not wanted). Returns 0 or -ENOMEM. */
int plans_take(struct plans *plans, struct config *config, config_strv *added, config_strv *changed,
               config_strv *removed);

/* To be called once the groups have started: fires slots once earlier decisions are known. */
void plans_start(struct plans *plans);
/* To be called when the store's state has changed, or durable jobs have been read from it. */
void plans_review(struct plans *plans);
/* Fires nothing any more: the supervisor stops. */
void plans_stop(struct plans *plans);
