/* SPDX-License-Identifier: MIT */
#include "tests/unit/parts-fixture.h"

#include "supervisor/group/group.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"

void set_up_parts(struct parts *parts, const struct config_daemon *config, int channel)
{
    log_nothing();
    memset(parts, 0, sizeof(*parts));
    registry_init(&parts->registry);
    parts->control.config = config;
    parts->loop = new_loop();
    message_context_init(&parts->messages);
    parts_connect(parts);
    ck_assert_int_eq(process_context_init(&parts->process, parts->loop, channel), 0);
    alarms_init(&parts->alarms, parts->loop);
    ck_assert_int_eq(job_table_init(&parts->jobs), 0);
    ck_assert_int_eq(event_bus_init(&parts->events), 0);
    death_log_init(&parts->deaths, 100);
    dead_letters_resize(&parts->messages.dead_letters, 100, 1 << 20);
}

void tear_down_parts(struct parts *parts)
{
    give_up_after(parts->loop, USEC_INFINITY);
    registry_deinit(&parts->registry);
    limit_table_deinit(&parts->limits);
    settings_deinit(&parts->stops);
    message_context_deinit(&parts->messages);
    job_table_deinit(&parts->jobs);
    event_bus_deinit(&parts->events);
    death_log_deinit(&parts->deaths);
    alarms_deinit(&parts->alarms);
    process_context_deinit(&parts->process);
    loop_free(parts->loop);
}

struct config_group *new_group_config(const char *name)
{
    struct config_group *config;

    ck_assert_int_eq(config_defaults(&config, name), 0);
    config->exec_start = calloc(2, sizeof(char *));
    config->exec_start[0] = strdup("/bin/false");
    return config;
}

struct group *add_group(struct parts *parts, struct config_group *config)
{
    struct group *group;

    ck_assert_int_eq(group_new(&group, &parts->groups, config), 0);
    ck_assert_int_eq(registry_add(&parts->registry, group), 0);
    return group;
}

void close_group(struct group *group, const char *why)
{
    struct loop_deferred *turn = &group->context->registry->closings.turn;

    group_close(group, why);
    while (list_linked(&group->closing.link)) {
        loop_undefer(turn);
        turn->fn(turn);
    }
}

void remove_group(struct parts *parts, struct group *group)
{
    close_group(group, "it is over");
    registry_remove(&parts->registry, group);
    group_free(group);
}
