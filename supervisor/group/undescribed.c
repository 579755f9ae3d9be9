/* SPDX-License-Identifier: MIT */
#include "supervisor/group/undescribed.h"

#include "supervisor/config/config-load.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Makes the configuration. It is not known how long results were to be kept. */
static int make_config(struct config_group **ret, const char *name, size_t size)
{
    char text[CONFIG_GROUP_NAME_MAX + 1];
    struct config_group *config;
    int r;

    if (size >= sizeof(text))
        return -EINVAL;
    (void)snprintf(text, sizeof(text), "%.*s", (int)size, name);
    r = config_defaults(&config, text);
    if (r < 0)
        return r;
    config->durable = config->unread = true;
    config->result_ttl = USEC_INFINITY;
    config->results_max = config->results_memory_max = UINT64_MAX;
    if (asprintf(&config->fault,
                 "no file describes it any more: put %s" CONFIG_GROUP_SUFFIX
                 " back, or cancel or move its jobs, and reload",
                 text) < 0) {
        config->fault = NULL;
        config_group_free(config);
        return -ENOMEM;
    }
    *ret = config;
    return 0;
}

int group_new_undescribed(struct group **ret, const struct group_context *context, const char *name,
                          size_t size)
{
    struct config_group *config;
    struct group *group;
    int r = make_config(&config, name, size);

    if (r < 0)
        return r;
    r = group_new(&group, context, config);
    if (r < 0) {
        config_group_free(config);
        return r;
    }
    r = registry_add(context->registry, group);
    if (r < 0) {
        group_free(group);
        return r;
    }
    group->removal = GROUP_REMOVED;
    list_push_back(&context->registry->removed, &group->removed_link);
    if (group_fault_begin(group, NULL) < 0) {
        registry_remove(context->registry, group);
        group_free(group);
        return -ENOMEM;
    }
    group_start(group); /* it would run: that is its state */
    *ret = group;
    return 0;
}

void group_report_undescribed(struct group *group)
{
    const uint64_t n_jobs = group->counts.n[JOBS_LIVE], n_results = group->results.n_jobs;

    group_tell(group, LOG_LEVEL_ERROR, "group.cannot-start",
               "cannot start: %s; on disk: %" PRIu64 " job%s, %" PRIu64 " kept result%s",
               group->config->fault, n_jobs, n_jobs == 1 ? "" : "s", n_results,
               n_results == 1 ? "" : "s");
}

void group_forget_undescribed(struct group *group)
{
    const uint64_t n = group->results.n_jobs;

    if (n > 0)
        group_tell(group, LOG_LEVEL_WARNING, "group.results-dropped",
                   "drops %" PRIu64 " kept result%s: no file describes it", n, n == 1 ? "" : "s");
    kept_results_set_bounds(&group->results, 0, 0, 0);
    if (group->counts.n[JOBS_LIVE] == 0)
        group_drained(group);
}
