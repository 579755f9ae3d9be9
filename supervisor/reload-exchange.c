/* SPDX-License-Identifier: MIT */
#include "supervisor/reload-exchange.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/exchange/exchange-actor.h"

#include "shared/base/log.h"
#include "supervisor/config/config-load.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/group/group.h"
#include "supervisor/message/router.h"
#include <string.h>

static int check_exchange(struct parts *parts, const struct config_exchange *wanted,
                          struct config_problems *problems)
{
    if (!registry_find(&parts->registry, wanted->name))
        return 0;
    return config_problem_add(problems, wanted->path, 0,
                              "there is still a group of that name: reload without this file "
                              "first");
}

/* An exchange that the administrator made at run time keeps its name. */
static int check_group(struct parts *parts, const struct config *config,
                       const struct config_group *wanted, struct config_problems *problems)
{
    const struct actor *actor = actor_by_name(&parts->messages, wanted->name);
    const struct exchange *exchange = actor ? actor_exchange(actor) : NULL;

    if (!exchange || exchange->creator != 0 ||
        (exchange->declared && !config_find_exchange(config, wanted->name)))
        return 0;
    return config_problem_add(problems, wanted->path, 0,
                              "an exchange has that name: groups, exchanges and registered names "
                              "share one name space");
}

static void take_name(struct parts *parts, const char *name, bool for_exchange)
{
    struct actor *actor = actor_by_name(&parts->messages, name);

    if (!actor || (actor_exchange(actor) && for_exchange))
        return;
    if (actor_exchange(actor)) {
        log_warning("exchange %s, made by %s, is deleted: a file declares a group of that name",
                    name, actor_name_of(&parts->messages, actor_exchange(actor)->creator));
        actor_end(actor, "a file declares a group of that name");
        return;
    }
    log_warning("%s loses the name %s, which it had registered: a file declares it", actor->name,
                name);
    (void)actor_deregister(actor, name);
}

void reload_take_names(struct parts *parts, const struct config *config)
{
    for (size_t i = 0; i < config->n_exchanges; i++)
        take_name(parts, config->exchanges[i]->name, true);
    for (size_t i = 0; i < config->n_groups; i++)
        take_name(parts, config->groups[i]->name, false);
}

/* Checks the number of exchanges, declared and made at run time. */
static int check_number(struct parts *parts, const struct config *config,
                        struct config_problems *problems)
{
    size_t n = config->n_exchanges, cursor = 0;
    const struct actor *actor;

    while ((actor = actor_next(&parts->messages.actors, &cursor)))
        n += actor_exchange(actor) && !actor_exchange(actor)->declared &&
             !config_find_exchange(config, actor->name);
    if (n <= EXCHANGES_MAX)
        return 0;
    return config_problem_add(
        problems, config->exchanges[config->n_exchanges - 1]->path, 0,
        "that would make %zu exchanges, with those made at run time; allowed: "
        "at most %u",
        n, EXCHANGES_MAX);
}

int reload_check_names(struct parts *parts, const struct config *config,
                       struct config_problems *problems)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_exchanges; i++)
        r = check_exchange(parts, config->exchanges[i], problems);
    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = check_group(parts, config, config->groups[i], problems);
    return r < 0 ? r : check_number(parts, config, problems);
}

int reload_remove_exchanges(struct parts *parts, const struct config *config,
                            struct reload_changes *changes)
{
    struct actor *actor;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (actor = actor_next(&parts->messages.actors, &cursor))) {
        if (!actor_exchange(actor) || !actor_exchange(actor)->declared ||
            config_find_exchange(config, actor->name))
            continue;
        r = strv_append(&changes->removed, actor->name);
        actor_end(actor, "its file was removed");
    }
    return r;
}

static int describe(struct exchange *exchange, const struct config_exchange *wanted)
{
    return exchange_describe(exchange, wanted->description ? wanted->description : "");
}

static int add(struct parts *parts, const struct config_exchange *wanted,
               struct reload_changes *changes)
{
    struct actor *actor;
    int r = exchange_actor_declare(&actor, &parts->messages, wanted->name, wanted->type);

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

static int update(struct actor *actor, const struct config_exchange *wanted,
                  struct reload_changes *changes)
{
    struct exchange *exchange = actor_exchange(actor);
    const char *before = exchange->description ? exchange->description : "";
    const bool other_kind = exchange->kind != wanted->type;
    const bool other_text = strcmp(before, wanted->description ? wanted->description : "") != 0;
    const bool others = !strv_equal(exchange->admitted, wanted->may_subscribe.strings);
    int r = 0;

    if (exchange->declared && !other_kind && !other_text && !others)
        return 0;
    if (others || !exchange->declared)
        r = exchange_actor_permit(actor, wanted->may_subscribe.strings);
    exchange->declared = true;
    exchange_actor_disown(actor);
    if (r == 0 && other_kind)
        r = exchange_change(exchange, wanted->type);
    if (r == 0)
        r = describe(exchange, wanted);
    return r < 0 ? r : strv_append(&changes->changed, wanted->name);
}

int reload_take_exchanges(struct parts *parts, const struct config *config,
                          struct reload_changes *changes)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_exchanges; i++) {
        const struct config_exchange *wanted = config->exchanges[i];
        struct actor *actor = actor_by_name(&parts->messages, wanted->name);

        r = actor ? update(actor, wanted, changes) : add(parts, wanted, changes);
    }
    return r;
}
