/* SPDX-License-Identifier: MIT */
#include "group.h"

#include "../shared/cleanup.h"
#include "../shared/log.h"
#include "context.h"
#include "slot.h"
#include "strv.h"
#include "user.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void group_tell(struct group *group, const char *type, const char *text)
{
    char message[256];

    (void)snprintf(message, sizeof(message), "%s %s", group->name, text);
    event_emit(&group->context->events, (struct event){
                                            .level = LOG_LEVEL_NOTICE,
                                            .type = type,
                                            .group = group->name,
                                            .message = message,
                                        });
}

int group_new(struct group **ret, struct context *context, struct config_group *config)
{
    struct group *group = calloc(1, sizeof(*group));
    int r;

    if (!group)
        return -ENOMEM;
    group->context = context;
    group->config = config;
    group->name = config->name;
    r = user_groups(config->user, config->gid, &group->groups, &group->n_groups);
    if (r == 0)
        r = user_environment(config->user, &group->user_environment);
    if (r == 0)
        r = cell_new(&group->cell, group);
    if (r < 0) {
        strv_free(group->user_environment);
        free(group->groups);
        free(group);
        return r;
    }
    *ret = group;
    return 0;
}

struct group *group_free(struct group *group)
{
    if (!group)
        return NULL;
    cell_free(group->cell);
    config_group_free(group->config);
    strv_free(group->user_environment);
    free(group->groups);
    free(group);
    return NULL;
}

/* For each slot that belongs to the pool, not to its past. */
static void group_each(struct group *group, void (*fn)(struct slot *slot))
{
    for (size_t i = 0; i < group->cell->size; i++)
        fn(group->cell->slots[i]);
}

void group_start(struct group *group)
{
    group->wanted = true;
    group->pending = false;
    group_each(group, slot_start);
}

void group_stop(struct group *group, bool hurry)
{
    struct slot *slot;
    size_t cursor = 0;

    group->wanted = group->pending = false;
    while ((slot = cell_next_slot(group->cell, &cursor)))
        slot_stop(slot, hurry);
}

void group_restart(struct group *group)
{
    group->wanted = true;
    group_each(group, slot_restart);
}

void group_reset(struct group *group)
{
    group_each(group, slot_reset);
}

void group_pause(struct group *group)
{
    if (group->cell->paused)
        return;
    cell_pause(group->cell);
    group_tell(group, "group.paused", "is paused: jobs are queued, none is handed out");
}

void group_resume(struct group *group)
{
    if (!group->cell->paused)
        return;
    cell_resume(group->cell);
    group_tell(group, "group.resumed", "is resumed");
}

int group_resize(struct group *group, int64_t size)
{
    char text[64];
    size_t before = group->cell->size;
    int r;

    if (size < 1 || size > GROUP_SIZE_MAX)
        return GROUP_E_BAD_SIZE;
    if ((size_t)size == before)
        return 0;
    r = cell_reserve(group->cell, (size_t)size);
    if (r < 0)
        return r;
    cell_set_size(group->cell, (size_t)size);
    (void)snprintf(text, sizeof(text), "is resized from %zu to %lld", before, (long long)size);
    group_tell(group, "group.resized", text);
    return 0;
}

/* Everybody who points into the old configuration points into this one. */
static void group_adopt(struct group *group, struct config_group *config)
{
    struct slot *slot;
    size_t cursor = 0;

    group->config = config;
    group->name = config->name;
    group->cell->config = config;
    while ((slot = cell_next_slot(group->cell, &cursor)))
        slot->process.group = config->name;
}

int group_reconfigure(struct group *group, struct config_group *config)
{
    struct config_group *before = group->config;
    bool roll = !config_group_same_process(before, config);
    bool resize = config->size != before->size;
    config_strv variables = NULL;
    gid_t *groups;
    size_t n_groups;
    int r;

    r = user_groups(config->user, config->gid, &groups, &n_groups);
    if (r < 0)
        return r;
    r = user_environment(config->user, &variables);
    if (r == 0 && resize)
        r = cell_reserve(group->cell, config->size);
    if (r < 0) {
        strv_free(variables);
        free(groups);
        return r;
    }
    strv_free(group->user_environment);
    group->user_environment = variables;
    free(group->groups);
    group->groups = groups;
    group->n_groups = n_groups;
    group_adopt(group, config);
    config_group_free(before);
    /* In this order: new slots already start as the new file says. */
    if (resize)
        cell_set_size(group->cell, config->size);
    for (size_t i = 0; roll && i < group->cell->size; i++)
        if (group->cell->slots[i]->wanted)
            slot_restart(group->cell->slots[i]);
    return 0;
}

void group_remove(struct group *group)
{
    group->removed = true;
    group_tell(group, "group.removed", "is removed: it drains");
    if (!group->wanted)
        cell_close(group->cell); /* nobody would run its queue any more */
    if (cell_live_jobs(group->cell) == 0)
        group_drained(group);
}

void group_drained(struct group *group)
{
    if (!group->drained)
        group_tell(group, "group.drained", "has no more jobs");
    group->drained = true;
    group_stop(group, false);
}

const char *group_state(const struct group *group)
{
    const struct cell *cell = group->cell;
    const struct slot *slot;
    size_t cursor = 0, n_slots = 0, n_down = 0, n_failed = 0, n_trouble = 0;

    while ((slot = cell_next_slot(cell, &cursor))) {
        n_slots++;
        n_down += slot_is_down(slot);
        n_failed += slot->state == LIFECYCLE_FAILED;
        n_trouble += slot->state == LIFECYCLE_FAILED || slot->state == LIFECYCLE_BACKOFF;
    }
    if (n_failed > 0 && n_down == n_slots)
        return "failed";
    if (n_down == n_slots)
        return "stopped";
    if (n_trouble > 0)
        return "degraded";
    return cell->paused ? "paused" : "running";
}

bool group_decided(const struct group *group)
{
    if (group->pending)
        return false;
    for (size_t i = 0; i < group->cell->n_slots; i++) {
        const struct slot *slot = group->cell->slots[i];
        bool starting =
            slot->generation == 0 || (slot->generation == 1 && slot->state == LIFECYCLE_STARTING);
        if (slot->wanted && starting)
            return false;
    }
    return true;
}

bool group_down(const struct group *group)
{
    const struct slot *slot;
    size_t cursor = 0;

    while ((slot = cell_next_slot(group->cell, &cursor)))
        if (!slot_is_down(slot))
            return false;
    return true;
}
