/* SPDX-License-Identifier: MIT */
#include "supervisor/reload.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/keys.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/group.h"
#include "supervisor/group/order.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange-actor.h"
#include "supervisor/process/cgroup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void reload_log_problems(const struct config_problems *problems)
{
    for (size_t i = 0; i < problems->n_problems; i++) {
        char text[CONFIG_PROBLEM_MAX];

        config_problem_print(text, sizeof(text), &problems->problems[i]);
        log_write(LOG_LEVEL_ERROR, LOG_FIELDS({"MESSAGE_ID", EVENT_ID_BAD_CONFIG}), "%s", text);
    }
}

/* Warns about limits that have no effect on this machine. */
static void warn_unmet(const struct parts *parts, const struct config_group *config)
{
    char keys[CGROUP_UNMET_SIZE];

    if (cgroup_unmet(cgroup_tree_controllers(parts->process.cgroups), config, keys, sizeof(keys)) >
        0)
        log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_GROUP", config->name}),
                  "%s: %s without effect on this machine: it has no cgroup controller for that",
                  config->path, keys);
}

static int reload_add_group(struct parts *parts, struct config_group *config)
{
    struct config_group *next;
    struct group *group;
    int r;

    warn_unmet(parts, config);
    r = group_new(&group, &parts->groups, config);
    if (r < 0) {
        config_group_free(config);
        return r;
    }
    next = TAKE_PTR(config->next);
    r = registry_add(&parts->registry, group);
    if (r == 0 && (config->fault || next))
        r = group_fault_begin(group, next);
    if (r == 0) {
        group_enlist(group);
        return 0;
    }
    config_group_free(next);
    group_free(group);
    return r;
}

/* Moves each group out of the configuration. */
static int each_group(struct config *config, struct parts *parts,
                      int (*take)(struct parts *parts, struct config_group *group,
                                  struct reload_changes *changes),
                      struct reload_changes *changes)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = take(parts, TAKE_PTR(config->groups[i]), changes);
    if (r == 0)
        config->n_groups = 0;
    return r;
}

static int add_first(struct parts *parts, struct config_group *config,
                     struct reload_changes *changes)
{
    return reload_add_group(parts, config);
}

int reload_add_groups(struct parts *parts, struct config *config)
{
    const int r = limit_table_take(&parts->limits, config, NULL, NULL, NULL);

    return r < 0 ? r : each_group(config, parts, add_first, NULL);
}

static int reload_remove_missing(struct parts *parts, const struct config *config,
                                 struct reload_changes *changes)
{
    size_t cursor = 0;
    struct group *group;
    int r = 0;

    while (r == 0 && (group = registry_next(&parts->registry, &cursor)))
        if (group_is_undescribed(group) && !config_find_group(config, group->name))
            group_forget_undescribed(group);
        else if (group->removal == GROUP_STAYS && !config_find_group(config, group->name)) {
            r = strv_append(&changes->removed, group->name);
            group_remove(group);
        }
    return r;
}

/* Applies the new configuration of a running group, and takes it over on success. */
static int reload_change_group(struct group *group, struct config_group *config)
{
    bool blocked = group_is_blocked(group);
    int r;

    group_fault_end(group);
    /* Running workers are kept if none can be started with the new configuration. */
    if (config->fault && !group_down(group))
        return group_fault_begin(group, config);
    r = group_reconfigure(group, config);
    if (r < 0)
        return r;
    if (config->fault && group_fault_begin(group, NULL) < 0)
        log_error("%s: out of memory; it stays down until the next reload", group->name);
    if (!config->fault && blocked)
        group_fault_unblock(group);
    return 0;
}

static bool is_of_other_kind(const struct group *group, const struct config_group *config)
{
    return group->config->type != config->type || group->config->cells != config->cells;
}

/* Whether the files of the group could not be read before, and now describe another kind. */
static bool must_make_way(const struct group *group, const struct config_group *config)
{
    return group && group->config->unread && is_of_other_kind(group, config);
}

bool reload_must_wait(const struct parts *parts, const struct config *loaded)
{
    bool waits = false;

    for (size_t i = 0; i < loaded->n_groups; i++) {
        struct group *group = registry_find(&parts->registry, loaded->groups[i]->name);

        if (!must_make_way(group, loaded->groups[i]))
            continue;
        if (!group->closed)
            group_close(group, "its files could not be read before");
        waits = waits || list_linked(&group->closing.link);
    }
    return waits;
}

/* Removes a group that has to make way, and sets `*group` to NULL: it has no worker, and its
 * durable jobs are on disk. Returns 0; or -EBUSY while some are being written: it is removed after
 * that. */
static int make_way(struct parts *parts, struct group **group, const struct config_group *config)
{
    if (!must_make_way(*group, config))
        return 0;
    if ((*group)->counts.n[JOBS_LIVE] > 0) {
        log_error("%s: it becomes another kind of group, and jobs of it are being written to disk: "
                  "reload again after that",
                  config->name);
        if ((*group)->removal == GROUP_STAYS)
            group_remove(*group);
        return -EBUSY;
    }
    registry_remove(&parts->registry, *group);
    *group = group_free(*group);
    return 0;
}

static int reload_take_group(struct parts *parts, struct config_group *config,
                             struct reload_changes *changes)
{
    struct group *group = registry_find(&parts->registry, config->name);
    int r = make_way(parts, &group, config);

    if (r < 0) {
        config_group_free(config);
        return r;
    }
    if (!group) {
        r = strv_append(&changes->added, config->name);
        if (r < 0) {
            config_group_free(config);
            return r;
        }
        return reload_add_group(parts, config);
    }
    if (group->removal == GROUP_STAYS && !group_is_behind(group) && !group->fault &&
        !config->fault && config_group_equal(group->config, config)) {
        config_group_free(config);
        return 0;
    }
    warn_unmet(parts, config);
    r = config->fault ? 0 : strv_append(&changes->changed, config->name);
    if (r == 0)
        r = reload_change_group(group, config);
    if (r < 0) {
        config_group_free(config);
        return r;
    }
    if (group->removal != GROUP_STAYS)
        group_restore(group);
    return 0;
}

static bool takes_jobs(const struct config_group *config)
{
    return config->type == CONFIG_ACTOR;
}

/* ---- exchanges ---- */

static int check_exchange(struct parts *parts, const struct config_exchange *wanted,
                          struct config_problems *problems)
{
    const struct actor *actor = actor_by_name(&parts->messages, wanted->name);
    const struct exchange *exchange = actor ? actor_exchange(actor) : NULL;
    const char *problem = NULL;

    if (registry_find(&parts->registry, wanted->name))
        problem = "there is still a group of that name";
    else if (exchange && exchange->declared && exchange->kind != wanted->type)
        problem = "Type= of an exchange cannot change";
    return problem ? config_problem_add(problems, wanted->path, 0,
                                        "%s: reload without this file first", problem)
                   : 0;
}

/* An exchange that the administrator made at run time keeps its name. */
static int check_group(struct parts *parts, const struct config *config,
                       const struct config_group *wanted, struct config_problems *problems)
{
    const struct actor *actor = actor_by_name(&parts->messages, wanted->name);
    const struct exchange *exchange = actor ? actor_exchange(actor) : NULL;

    if (!exchange || exchange->creator != 0 ||
        (exchange->declared && !config_find_file(config, CONFIG_EXCHANGE, wanted->name)))
        return 0;
    return config_problem_add(problems, wanted->path, 0,
                              "an exchange has that name: groups, exchanges and registered names "
                              "share one name space");
}

/* A file declares a group (-1) or an exchange of this kind: takes its name from any other actor. */
static void take_name(struct parts *parts, const char *name, int kind)
{
    struct actor *actor = actor_by_name(&parts->messages, name);
    const struct exchange *exchange = actor ? actor_exchange(actor) : NULL;

    if (!actor || (exchange && (int)exchange->kind == kind))
        return;
    if (exchange) {
        log_warning("exchange %s, made by %s, is deleted: a file declares %s of that name", name,
                    actor_name_of(&parts->messages, exchange->creator),
                    kind < 0 ? "a group" : "another exchange");
        actor_end(actor, "a file declares another actor of that name");
        return;
    }
    log_warning("%s loses the name %s, which it had registered: a file declares it", actor->name,
                name);
    (void)actor_deregister(actor, name);
}

/* Takes the names that files declare from actors that have them at run time; logged. */
static void take_names(struct parts *parts, const struct config *config)
{
    const struct config_files *exchanges = &config->files[CONFIG_EXCHANGE];

    for (size_t i = 0; i < exchanges->n; i++) {
        const struct config_exchange *exchange = exchanges->all[i];

        take_name(parts, exchange->name, (int)exchange->type);
    }
    for (size_t i = 0; i < config->n_groups; i++)
        take_name(parts, config->groups[i]->name, -1);
}

/* Checks the number of exchanges, declared and made at run time. */
static int check_number(struct parts *parts, const struct config *config,
                        struct config_problems *problems)
{
    const struct config_files *exchanges = &config->files[CONFIG_EXCHANGE];
    size_t n = exchanges->n;

    actor_each (actor, &parts->messages.actors)
        n += actor_exchange(actor) && !actor_exchange(actor)->declared &&
             !config_find_file(config, CONFIG_EXCHANGE, actor->name);
    if (n <= EXCHANGES_MAX)
        return 0;
    return config_problem_add(
        problems, ((const struct config_file *)exchanges->all[exchanges->n - 1])->path, 0,
        "that would make %zu exchanges, with those made at run time; allowed: "
        "at most %u",
        n, EXCHANGES_MAX);
}

/* Adds a problem for each exchange with the name of a group, and for each group with that of an
 * exchange. */
static int check_names(struct parts *parts, const struct config *config,
                       struct config_problems *problems)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->files[CONFIG_EXCHANGE].n; i++)
        r = check_exchange(parts, config->files[CONFIG_EXCHANGE].all[i], problems);
    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = check_group(parts, config, config->groups[i], problems);
    return r < 0 ? r : check_number(parts, config, problems);
}

/* Ends exchanges whose file is gone, before groups are added, which may want the name. */
static int remove_exchanges(struct parts *parts, const struct config *config,
                            struct reload_changes *changes)
{
    int r = 0;

    actor_each (actor, &parts->messages.actors) {
        if (!actor_exchange(actor) || !actor_exchange(actor)->declared ||
            config_find_file(config, CONFIG_EXCHANGE, actor->name))
            continue;
        r = strv_append(&changes->removed, actor->name);
        actor_end(actor, "its file was removed");
        if (r < 0)
            break;
    }
    return r;
}

static int describe(struct exchange *exchange, const struct config_exchange *wanted)
{
    return exchange_describe(exchange, wanted->description ? wanted->description : "");
}

static int add_exchange(struct parts *parts, const struct config_exchange *wanted,
                        struct reload_changes *changes)
{
    struct actor *actor;
    int r = exchange_actor_new(&actor, &parts->messages, wanted->name, wanted->type, true);

    if (r == ACTOR_E_TOO_MANY)
        log_error("%s: too many exchanges; allowed: at most %u", wanted->path, EXCHANGES_MAX);
    if (r != 0)
        return r < 0 ? r : -EEXIST;
    actor_exchange(actor)->declared = true;
    r = exchange_actor_permit(actor, wanted->may_subscribe.strings);
    if (r == 0)
        r = strv_append(&changes->added, wanted->name);
    return r < 0 ? r : describe(actor_exchange(actor), wanted);
}

static int update_exchange(struct actor *actor, const struct config_exchange *wanted,
                           struct reload_changes *changes)
{
    struct exchange *exchange = actor_exchange(actor);
    const char *before = exchange->description ? exchange->description : "";
    const bool other_text = strcmp(before, wanted->description ? wanted->description : "") != 0;
    const bool others = !strv_equal(exchange->admitted, wanted->may_subscribe.strings);
    int r = 0;

    if (exchange->declared && !other_text && !others)
        return 0;
    if (others || !exchange->declared)
        r = exchange_actor_permit(actor, wanted->may_subscribe.strings);
    exchange->declared = true;
    exchange_actor_disown(actor);
    if (r == 0)
        r = describe(exchange, wanted);
    return r < 0 ? r : strv_append(&changes->changed, wanted->name);
}

int reload_take_exchanges(struct parts *parts, const struct config *config,
                          struct reload_changes *changes)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->files[CONFIG_EXCHANGE].n; i++) {
        const struct config_exchange *wanted = config->files[CONFIG_EXCHANGE].all[i];
        struct actor *actor = actor_by_name(&parts->messages, wanted->name);

        r = actor ? update_exchange(actor, wanted, changes) : add_exchange(parts, wanted, changes);
    }
    return r;
}

/* ---- checks ---- */

/* Refuses changes of Cells=, and from or to Type=actor, of running groups: their jobs would have no
 * cell. */
static int reload_check_kinds(struct parts *parts, const struct config *config,
                              struct config_problems *problems)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++) {
        const struct config_group *wanted = config->groups[i];
        const struct group *group = registry_find(&parts->registry, wanted->name);
        const char *changed = !group || group->config->unread                   ? NULL
                              : takes_jobs(group->config) != takes_jobs(wanted) ? "Type=actor"
                              : group->config->cells != wanted->cells           ? "Cells="
                                                                                : NULL;
        if (changed)
            r = config_problem_add(problems, wanted->path, 0,
                                   "%s of a running group cannot change: move the file away, "
                                   "reload, and put it back",
                                   changed);
    }
    return r;
}

/* Returns how many groups the reload would remove if it would remove all; else 0. */
static size_t count_emptied(const struct parts *parts, const struct config *config)
{
    size_t n = 0;

    if (config->n_groups > 0)
        return 0;
    registry_each_group (group, &parts->registry)
        n += group->removal == GROUP_STAYS;
    return n;
}

/* A directory that was moved or is not mounted must not remove all groups. */
static int refuse_empty(const char *directory, size_t n, const char *noun,
                        struct config_problems *problems)
{
    int r = config_problem_add(problems, directory, 0,
                               "has no NAME.group any more, and %zu %s%s run%s; to remove all "
                               "of them: troupectl reload --allow-empty",
                               n, noun, n == 1 ? "" : "s", n == 1 ? "s" : "");

    return r < 0 ? r : CONFIG_E_INVALID;
}

static size_t count_held(const struct held_table *table)
{
    static const enum holding_kind kinds[] = {HOLDING_WORKER, HOLDING_SERVICE};
    size_t n = 0;

    for (size_t i = 0; i < ELEMENTS(kinds); i++)
        for (const struct held *held = NULL; (held = held_next(table, kinds[i], held));)
            n++;
    return n;
}

int reload_check_held(const struct parts *parts, const char *directory, const struct config *config,
                      struct config_problems *problems)
{
    const size_t n = config->n_groups > 0 ? 0 : count_held(&parts->process.held);

    return n > 0 ? refuse_empty(directory, n, "worker", problems) : 0;
}

/* Checks against what runs. Returns 0, CONFIG_E_INVALID, or -ENOMEM. */
static int reload_check(struct parts *parts, const char *directory, const struct config *config,
                        struct reload_call *call)
{
    size_t n_emptied;
    int r = reload_check_kinds(parts, config, &call->problems);

    if (r >= 0)
        r = check_names(parts, config, &call->problems);
    if (r < 0)
        return r;
    n_emptied = call->allow_empty ? 0 : count_emptied(parts, config);
    if (n_emptied > 0)
        return refuse_empty(directory, n_emptied, "group", &call->problems);
    if (!call->allow_empty)
        r = reload_check_held(parts, directory, config, &call->problems);
    if (r != 0)
        return r;
    return call->problems.n_problems > 0 ? CONFIG_E_INVALID : 0;
}

int reload_read(struct parts *parts, const char *directory, struct reload_call *call,
                struct config **ret)
{
    struct config *loaded = NULL;
    int r = config_read(&loaded, directory, &call->problems);

    if (r >= 0)
        r = reload_check(parts, directory, loaded, call);
    if (r != 0) {
        config_free(loaded);
        return r;
    }
    *ret = loaded;
    return 0;
}

int reload_apply(struct parts *parts, struct config **config, struct config *loaded,
                 struct reload_changes *changes)
{
    int r = reload_remove_missing(parts, loaded, changes);

    if (r == 0)
        r = remove_exchanges(parts, loaded, changes);
    take_names(parts, loaded);
    if (r == 0)
        r = limit_table_take(&parts->limits, loaded, &changes->added, &changes->changed,
                             &changes->removed);
    if (r == 0)
        r = each_group(loaded, parts, reload_take_group, changes);
    limit_table_forget_unused(&parts->limits);
    if (r == 0)
        r = reload_take_exchanges(parts, loaded, changes);
    if (r == 0)
        r = plans_take(&parts->plans, loaded, &changes->added, &changes->changed,
                       &changes->removed);
    if (r == 0 &&
        !config_schema_equal(&CONFIG_DAEMON_SCHEMA, &(*config)->daemon, &loaded->daemon, false))
        r = strv_append(&changes->changed, "troupe.conf");
    config_free(*config);
    *config = loaded;
    order_start(&parts->registry);
    if (r < 0) {
        log_error("the new configuration could not be applied whole, reload again: %s",
                  strerror(-r));
        return r;
    }
    log_notice("configuration reloaded: %zu added, %zu removed, %zu changed",
               strv_length(changes->added), strv_length(changes->removed),
               strv_length(changes->changed));
    return 0;
}
