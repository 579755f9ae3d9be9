/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/limit-table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct config_bounds CLOSED = {.burst = 1, .running = 0};

void limit_table_init(struct limit_table *table, struct loop *loop)
{
    *table = (struct limit_table){.loop = loop};
    list_init(&table->limits);
    settings_init(&table->settings, &LIMIT_ROWS);
}

/* ---- settings ---- */

const struct limit_row *limit_table_setting(const struct limit_table *table, const char *name)
{
    const struct setting *setting = settings_find(&table->settings, name, strlen(name));

    return setting ? (const struct limit_row *)setting->row : NULL;
}

struct config_bounds limit_row_bounds(const struct limit_row *row, const struct config_bounds *file)
{
    struct config_bounds bounds = *file;

    if (row->rate > 0)
        bounds.rate = (struct config_rate){.n = row->rate == LIMIT_ROW_NONE ? 0 : row->rate,
                                           .period = row->period};
    if (row->burst > 0)
        bounds.burst = row->burst;
    if (row->running > 0)
        bounds.running = row->running == LIMIT_ROW_NONE ? CONFIG_UNSET : row->running;
    return bounds;
}

struct config_bounds limit_table_bounds(const struct limit_table *table, const char *name,
                                        const struct config_bounds *file)
{
    const struct limit_row *row = limit_table_setting(table, name);

    return row ? limit_row_bounds(row, file) : *file;
}

struct config_bounds limit_part(const struct config_group *config, const struct config_bounds *all,
                                enum config_limit_per per)
{
    struct config_bounds bounds = LIMIT_NO_BOUNDS;

    bounds.burst = all->burst;
    if (config->rate_per == per)
        bounds.rate = all->rate;
    if (config->running_per == per)
        bounds.running = all->running;
    return bounds;
}

struct config_bounds limit_table_key_bounds(const struct limit_table *table,
                                            const struct config_group *config,
                                            const struct config_bounds *bounds, const char *key,
                                            size_t size)
{
    char name[LIMIT_SETTING_NAME_MAX + 1];
    const size_t before = (size_t)(stpcpy(stpcpy(name, config->name), "/") - name);
    const struct setting *setting;
    struct config_bounds ret = *bounds;

    memcpy(name + before, key, size);
    setting = settings_find(&table->settings, name, before + size);
    if (setting)
        ret = limit_row_bounds((const struct limit_row *)setting->row, bounds);
    return limit_part(config, &ret, CONFIG_LIMIT_PER_KEY);
}

bool limit_is_key_of(const char *name, const char *group)
{
    const size_t size = strlen(group);

    return strncmp(name, group, size) == 0 && name[size] == '/';
}

bool limit_table_has_keys(const struct limit_table *table, const char *group)
{
    list_for_each_entry (setting, &table->settings.all, struct setting, link)
        if (limit_is_key_of(setting->name, group))
            return true;
    return false;
}

static void apply(const struct limit_table *table, struct named_limit *limit)
{
    const struct config_bounds bounds = limit_table_bounds(table, limit->name, &limit->file);

    limit_set_bounds(&limit->limit, &bounds);
    limit_review(&limit->limit);
}

void limit_table_apply(struct limit_table *table, const char *name)
{
    list_for_each_entry (limit, &table->limits, struct named_limit, link)
        if (name ? strcmp(limit->name, name) == 0 : limit_table_setting(table, limit->name) != NULL)
            apply(table, limit);
}

/* ---- limits ---- */

static void free_limit(struct named_limit *limit)
{
    list_unlink(&limit->link);
    limit_deinit(&limit->limit);
    free(limit);
}

void limit_table_deinit(struct limit_table *table)
{
    if (!table->limits.next)
        return;
    list_for_each_entry_safe (limit, &table->limits, struct named_limit, link)
        free_limit(limit);
    settings_deinit(&table->settings);
}

struct named_limit *limit_table_find(const struct limit_table *table, const char *name)
{
    list_for_each_entry (limit, &table->limits, struct named_limit, link)
        if (strcmp(limit->name, name) == 0)
            return limit;
    return NULL;
}

/* The first limit behind this name, or the end. */
static struct list *place_of(struct limit_table *table, const char *name)
{
    struct list *at = table->limits.next;

    while (at != &table->limits && strcmp(list_entry(at, struct named_limit, link)->name, name) < 0)
        at = at->next;
    return at;
}

static struct named_limit *get(struct limit_table *table, const char *name)
{
    struct named_limit *limit = limit_table_find(table, name);

    if (limit)
        return limit;
    limit = calloc(1, sizeof(*limit) + strlen(name) + 1);
    if (!limit)
        return NULL;
    (void)stpcpy(limit->name, name);
    limit_init(&limit->limit, limit->name, table->loop);
    limit->file = CLOSED;
    limit_set_bounds(&limit->limit, &CLOSED);
    list_push_back(place_of(table, name), &limit->link); /* in front of it */
    return limit;
}

int limit_table_reserve(struct limit_table *table, const struct config_group *config)
{
    for (char **name = config->uses.strings; name && *name; name++)
        if (!get(table, *name))
            return -ENOMEM;
    return 0;
}

/* A limit that groups in removal still use keeps its bounds. */
static int note_missing(struct limit_table *table, const struct config *config,
                        config_strv *removed)
{
    int r = 0;

    list_for_each_entry (limit, &table->limits, struct named_limit, link) {
        if (config_find_file(config, CONFIG_LIMIT, limit->name))
            continue;
        if (limit->described && r == 0)
            r = strv_append_file(removed, limit->name, CONFIG_LIMIT_SUFFIX);
        limit->described = false;
    }
    return r;
}

void limit_table_forget_unused(struct limit_table *table)
{
    list_for_each_entry_safe (limit, &table->limits, struct named_limit, link) {
        if (!limit->described && list_empty(&limit->limit.uses))
            free_limit(limit);
    }
}

static bool bounds_equal(const struct config_bounds *a, const struct config_bounds *b)
{
    return a->rate.n == b->rate.n && a->rate.period == b->rate.period && a->burst == b->burst &&
           a->running == b->running;
}

static int take(struct limit_table *table, const struct config_limit *config, config_strv *added,
                config_strv *changed)
{
    struct named_limit *limit = get(table, config->name);
    int r = 0;

    if (!limit)
        return -ENOMEM;
    if (!limit->described)
        r = strv_append_file(added, limit->name, CONFIG_LIMIT_SUFFIX);
    else if (!bounds_equal(&limit->file, &config->bounds))
        r = strv_append_file(changed, limit->name, CONFIG_LIMIT_SUFFIX);
    limit->described = true;
    limit->file = config->bounds;
    apply(table, limit);
    return r;
}

int limit_table_take(struct limit_table *table, const struct config *config, config_strv *added,
                     config_strv *changed, config_strv *removed)
{
    int r = note_missing(table, config, removed);

    for (size_t i = 0; r == 0 && i < config->files[CONFIG_LIMIT].n; i++)
        r = take(table, config->files[CONFIG_LIMIT].all[i], added, changed);
    return r;
}
