/* SPDX-License-Identifier: MIT */
#include "supervisor/group/cell/limit-table.h"

#include "shared/base/hash.h"
#include "shared/base/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define limit_of(node)   list_entry(node, struct named_limit, link)
#define setting_of(node) list_entry(node, struct limit_setting, link)

static const struct config_bounds CLOSED = {.burst = 1, .running = 0};

void limit_table_init(struct limit_table *table, struct loop *loop)
{
    *table = (struct limit_table){.loop = loop};
    list_init(&table->limits);
    list_init(&table->settings);
    list_init(&table->fresh);
}

/* ---- settings ---- */

static struct limit_setting *find_setting(const struct limit_table *table, const char *name,
                                          size_t size)
{
    struct index_entry *entry =
        table->by_name.n_entries > 0 ? index_find(&table->by_name, hash_bytes(name, size)) : NULL;

    for (; entry; entry = index_find_next(entry)) {
        struct limit_setting *setting = list_entry(entry, struct limit_setting, by_name);

        if (strlen(setting->name) == size && memcmp(setting->name, name, size) == 0)
            return setting;
    }
    return NULL;
}

const struct limit_row *limit_table_setting(const struct limit_table *table, const char *name)
{
    const struct limit_setting *setting = find_setting(table, name, strlen(name));

    return setting ? &setting->row : NULL;
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
    const struct limit_setting *setting;
    struct config_bounds ret = *bounds;

    memcpy(name + before, key, size);
    setting = find_setting(table, name, before + size);
    if (setting)
        ret = limit_row_bounds(&setting->row, bounds);
    return limit_part(config, &ret, CONFIG_LIMIT_PER_KEY);
}

bool limit_is_key_of(const char *name, const char *group)
{
    const size_t size = strlen(group);

    return strncmp(name, group, size) == 0 && name[size] == '/';
}

bool limit_table_has_keys(const struct limit_table *table, const char *group)
{
    list_for_each (node, &table->settings)
        if (limit_is_key_of(setting_of(node)->name, group))
            return true;
    return false;
}

static struct limit_setting *new_setting(const char *name, const struct limit_row *row)
{
    struct limit_setting *setting = calloc(1, sizeof(*setting) + strlen(name) + 1);

    if (!setting)
        return NULL;
    list_init(&setting->link);
    setting->row = *row;
    (void)stpcpy(setting->name, name);
    return setting;
}

static void add_setting(struct limit_table *table, struct limit_setting *setting)
{
    list_push_back(&table->settings, &setting->link);
    index_add(&table->by_name, &setting->by_name, hash_bytes(setting->name, strlen(setting->name)));
}

static void drop_setting(struct limit_table *table, struct limit_setting *setting)
{
    list_unlink(&setting->link);
    index_remove(&table->by_name, &setting->by_name);
    free(setting);
}

static void apply(const struct limit_table *table, struct named_limit *limit)
{
    const struct config_bounds bounds = limit_table_bounds(table, limit->name, &limit->file);

    limit_set_bounds(&limit->limit, &bounds);
    limit_review(&limit->limit);
}

static int put_setting(struct limit_table *table, const char *name, const struct limit_row *row)
{
    struct limit_setting *setting = find_setting(table, name, strlen(name));

    if (setting) {
        setting->row = *row;
        return 0;
    }
    if (limit_table_is_full(table))
        return LIMIT_TABLE_E_FULL;
    setting = new_setting(name, row);
    if (!setting)
        return -ENOMEM;
    add_setting(table, setting);
    return 0;
}

int limit_table_set(struct limit_table *table, const char *name, const struct limit_row *row)
{
    struct limit_setting *setting = row ? NULL : find_setting(table, name, strlen(name));
    struct named_limit *limit = limit_table_find(table, name);
    const int r = row ? put_setting(table, name, row) : 0;

    if (setting)
        drop_setting(table, setting);
    if (r == 0 && limit)
        apply(table, limit);
    return r;
}

/* ---- settings of earlier runs ---- */

static void drop_fresh(struct limit_table *table)
{
    list_for_each_safe (node, &table->fresh) {
        list_unlink(node);
        free(setting_of(node));
    }
}

static int note_row(void *userdata, const char *name, const struct limit_row *row)
{
    struct limit_table *table = userdata;
    struct limit_setting *setting = new_setting(name, row);

    if (!setting)
        return -ENOMEM;
    list_push_back(&table->fresh, &setting->link);
    return 0;
}

static int apply_reading(struct store_task *task, struct database *database)
{
    struct limit_table *table = list_entry(task, struct limit_table, reading);

    drop_fresh(table);
    return limit_rows_scan(database, note_row, table);
}

/* A setting that was made in the meantime stays. */
static void take_fresh(struct limit_table *table)
{
    list_for_each_safe (node, &table->fresh) {
        struct limit_setting *setting = setting_of(node);
        struct named_limit *limit = limit_table_find(table, setting->name);

        list_unlink(node);
        if (limit_table_is_full(table) ||
            find_setting(table, setting->name, strlen(setting->name))) {
            free(setting);
            continue;
        }
        add_setting(table, setting);
        if (limit)
            apply(table, limit);
    }
}

static void on_read(struct store_task *task, int result)
{
    struct limit_table *table = list_entry(task, struct limit_table, reading);

    table->is_reading = false;
    if (result == 0) {
        table->read = true;
        table->awaited = false;
        take_fresh(table);
        table->known(table);
    } else if (result != -ECANCELED) {
        log_error("limits that were set at run time cannot be read from disk: %s",
                  strerror(-result));
    }
    drop_fresh(table);
}

void limit_table_read(struct limit_table *table, struct store *store,
                      void (*known)(struct limit_table *table))
{
    if (table->read || table->is_reading)
        return;
    table->is_reading = true;
    table->known = known;
    table->reading = (struct store_task){.apply = apply_reading, .done = on_read};
    list_init(&table->reading.link);
    store_add(store, &table->reading);
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
    list_for_each_safe (node, &table->limits)
        free_limit(limit_of(node));
    list_for_each_safe (node, &table->settings)
        drop_setting(table, setting_of(node));
    drop_fresh(table);
    index_deinit(&table->by_name);
}

struct named_limit *limit_table_find(const struct limit_table *table, const char *name)
{
    list_for_each (node, &table->limits)
        if (strcmp(limit_of(node)->name, name) == 0)
            return limit_of(node);
    return NULL;
}

/* The first limit behind this name, or the end. */
static struct list *place_of(struct limit_table *table, const char *name)
{
    struct list *at = table->limits.next;

    while (at != &table->limits && strcmp(limit_of(at)->name, name) < 0)
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

    list_for_each (node, &table->limits) {
        struct named_limit *limit = limit_of(node);

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
    list_for_each_safe (node, &table->limits) {
        struct named_limit *limit = limit_of(node);

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
