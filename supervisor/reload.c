/* SPDX-License-Identifier: MIT */
#include "reload.h"

#include "../shared/log.h"
#include "cgroup.h"
#include "config-problem.h"
#include "event-id.h"
#include "group.h"
#include "order.h"
#include "reload-exchange.h"
#include "strv.h"
#include <errno.h>
#include <string.h>

void reload_log_problems(const struct config_problems *problems)
{
    for (size_t i = 0; i < problems->n_problems; i++) {
        const struct config_problem *problem = &problems->problems[i];
        const struct log_fields fields = LOG_FIELDS({"MESSAGE_ID", EVENT_ID_BAD_CONFIG});
        if (problem->line > 0)
            log_write(LOG_LEVEL_ERROR, fields, "%s:%u: %s", problem->path, problem->line,
                      problem->text);
        else
            log_write(LOG_LEVEL_ERROR, fields, "%s: %s", problem->path, problem->text);
    }
}

/* Who wrote a limit relies on it. */
static void warn_unmet(const struct context *context, const struct config_group *config)
{
    char keys[96];

    if (cgroup_unmet(context->cgroups, config, keys, sizeof(keys)) > 0)
        log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_GROUP", config->name}),
                  "%s: without effect on this machine, for want of a control group: %s",
                  config->path, keys);
}

int reload_add_group(struct context *context, struct config_group *config)
{
    struct group *group;
    int r;

    warn_unmet(context, config);
    r = group_new(&group, context, config);
    if (r < 0) {
        config_group_free(config);
        return r;
    }
    r = registry_add(&context->registry, group);
    if (r < 0)
        group_free(group);
    else
        group_set_pending(group, true);
    return r;
}

void reload_changes_deinit(struct reload_changes *changes)
{
    changes->added = strv_free(changes->added);
    changes->removed = strv_free(changes->removed);
    changes->changed = strv_free(changes->changed);
}

static const struct config_group *find(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->n_groups; i++)
        if (strcmp(config->groups[i]->name, name) == 0)
            return config->groups[i];
    return NULL;
}

static int reload_remove_missing(struct context *context, const struct config *config,
                                 struct reload_changes *changes)
{
    size_t cursor = 0;
    struct group *group;
    int r = 0;

    while (r == 0 && (group = registry_next(&context->registry, &cursor)))
        if (!group->removed && !find(config, group->name)) {
            r = strv_append(&changes->removed, group->name);
            group_remove(group);
        }
    return r;
}

static int reload_take_group(struct context *context, struct config_group *config,
                             struct reload_changes *changes)
{
    struct group *group = registry_find(&context->registry, config->name);
    int r;

    if (!group) {
        r = strv_append(&changes->added, config->name);
        if (r < 0) {
            config_group_free(config);
            return r;
        }
        return reload_add_group(context, config);
    }
    if (!group->removed && !group_is_behind(group) && config_group_equal(group->config, config)) {
        config_group_free(config);
        return 0;
    }
    warn_unmet(context, config);
    r = strv_append(&changes->changed, config->name);
    if (r == 0)
        r = group_reconfigure(group, config);
    if (r < 0) {
        config_group_free(config);
        return r;
    }
    if (group->removed)
        group_restore(group);
    return 0;
}

static size_t count(config_strv names)
{
    return strv_length((const char *const *)names);
}

/*
 * A pool of workers cannot become a service under its jobs, nor the other way round; and jobs
 * without keys would find no cell, jobs with keys would lose theirs.
 */
static int reload_check_kinds(struct context *context, const struct config *config,
                              struct config_problems *problems)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++) {
        const struct config_group *wanted = config->groups[i];
        const struct group *group = registry_find(&context->registry, wanted->name);
        const char *changed = !group                                  ? NULL
                              : group->config->type != wanted->type   ? "Type"
                              : group->config->cells != wanted->cells ? "Cells"
                                                                      : NULL;
        if (changed)
            r = config_problem_add(problems, wanted->path, 0,
                                   "%s= of a group that runs cannot change: move the file away, "
                                   "reload, and put it back",
                                   changed);
    }
    if (r < 0)
        return r;
    return problems->n_problems > 0 ? CONFIG_E_INVALID : 0;
}

int reload(struct context *context, const char *directory, struct config **config,
           struct reload_changes *ret, struct config_problems *problems)
{
    struct config *loaded;
    int r;

    r = config_load(&loaded, directory, problems);
    if (r == 0) {
        r = reload_check_kinds(context, loaded, problems);
        if (r >= 0)
            r = reload_check_names(context, loaded, problems);
        if (r != 0)
            config_free(loaded);
    }
    if (r == CONFIG_E_INVALID)
        reload_log_problems(problems);
    else if (r < 0)
        log_error("%s: cannot read the configuration: %s", directory, strerror(-r));
    if (r != 0)
        return r;
    r = reload_remove_missing(context, loaded, ret);
    if (r == 0)
        r = reload_remove_exchanges(context, loaded, ret);
    while (r == 0 && loaded->n_groups > 0)
        r = reload_take_group(context, config_take_group(loaded, 0), ret);
    if (r == 0)
        r = reload_take_exchanges(context, loaded, ret);
    config_free(*config);
    *config = loaded;
    order_start(&context->registry);
    if (r < 0) {
        log_error("the new configuration could not be applied whole, reload again: %s",
                  strerror(-r));
        return r;
    }
    log_notice("configuration reloaded: %zu groups and exchanges added, %zu removed, %zu changed",
               count(ret->added), count(ret->removed), count(ret->changed));
    return 0;
}
