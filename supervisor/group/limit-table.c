/* SPDX-License-Identifier: MIT */
#include "supervisor/group/limit-table.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define limit_of(node) list_entry(node, struct named_limit, link)

static const struct config_bounds CLOSED = {.burst = 1, .running = 0};

void limit_table_init(struct limit_table *table, struct loop *loop)
{
    *table = (struct limit_table){.loop = loop};
    list_init(&table->limits);
    list_init(&table->settings);
}

/* ---- settings ---- */

static struct limit_setting *find_setting(const struct limit_table *table, const char *name)
{
    list_for_each (node, &table->settings) {
        struct limit_setting *setting = list_entry(node, struct limit_setting, link);

        if (strcmp(setting->name, name) == 0)
            return setting;
    }
    return NULL;
}

const struct limit_row *limit_table_setting(const struct limit_table *table, const char *name)
{
    const struct limit_setting *setting = find_setting(table, name);

    return setting ? &setting->row : NULL;
}

struct config_bounds limit_table_bounds(const struct limit_table *table, const char *name,
                                        const struct config_bounds *file)
{
    const struct limit_row *row = limit_table_setting(table, name);
    struct config_bounds bounds = *file;

    if (!row)
        return bounds;
    if (row->rate > 0)
        bounds.rate = (struct config_rate){.n = row->rate == LIMIT_ROW_NONE ? 0 : row->rate,
                                           .period = row->period};
    if (row->burst > 0)
        bounds.burst = row->burst;
    if (row->running > 0)
        bounds.running = row->running == LIMIT_ROW_NONE ? CONFIG_UNSET : row->running;
    return bounds;
}

static void drop_setting(struct limit_table *table, struct limit_setting *setting)
{
    if (!setting)
        return;
    list_unlink(&setting->link);
    table->n_settings--;
    free(setting);
}

static int add_setting(struct limit_table *table, const char *name, const struct limit_row *row)
{
    struct limit_setting *setting;

    if (table->n_settings >= LIMIT_SETTINGS_MAX)
        return LIMIT_TABLE_E_FULL;
    setting = calloc(1, sizeof(*setting) + strlen(name) + 1);
    if (!setting)
        return -ENOMEM;
    setting->row = *row;
    (void)stpcpy(setting->name, name);
    list_push_back(&table->settings, &setting->link);
    table->n_settings++;
    return 0;
}

static void apply(const struct limit_table *table, struct named_limit *limit)
{
    const struct config_bounds bounds = limit_table_bounds(table, limit->name, &limit->file);

    limit_set_bounds(&limit->limit, &bounds);
}

int limit_table_set(struct limit_table *table, const char *name, const struct limit_row *row)
{
    struct named_limit *limit = limit_table_find(table, name);
    struct limit_setting *setting = find_setting(table, name);
    int r = 0;

    if (row && setting)
        setting->row = *row;
    else if (row)
        r = add_setting(table, name, row);
    else
        drop_setting(table, setting);
    if (r == 0 && limit)
        apply(table, limit);
    return r;
}

/* Owned by the store. */
struct limit_reading {
    struct store_task task;
    struct limit_table *table; /* NULL = it has ended */
    void (*done)(struct limit_table *table);
    struct limit_table rows; /* its settings */
};

static int note_row(void *userdata, const char *name, const struct limit_row *row)
{
    struct limit_reading *reading = userdata;
    const int r = add_setting(&reading->rows, name, row);

    return r < 0 ? r : 0;
}

static void drop_settings(struct limit_table *table)
{
    list_for_each_safe (node, &table->settings)
        drop_setting(table, list_entry(node, struct limit_setting, link));
}

static int apply_reading(struct store_task *task, struct database *database)
{
    struct limit_reading *reading = list_entry(task, struct limit_reading, task);

    drop_settings(&reading->rows);
    return limit_rows_scan(database, note_row, reading);
}

/* A setting that was made since then stays. */
static void take_rows(struct limit_table *table, const struct limit_table *rows)
{
    list_for_each (node, &rows->settings) {
        const struct limit_setting *setting = list_entry(node, struct limit_setting, link);

        if (!find_setting(table, setting->name))
            (void)limit_table_set(table, setting->name, &setting->row);
    }
}

static void on_read(struct store_task *task, int result)
{
    struct limit_reading *reading = list_entry(task, struct limit_reading, task);
    struct limit_table *table = reading->table;

    if (table) {
        table->reading = NULL;
        take_rows(table, &reading->rows);
    }
    if (result < 0 && result != -ECANCELED)
        log_error("what was set of limits cannot be read from disk: %s; their files decide",
                  strerror(-result));
    if (table && result != -ECANCELED)
        reading->done(table);
    drop_settings(&reading->rows);
    free(reading);
}

void limit_table_read(struct limit_table *table, struct store *store,
                      void (*done)(struct limit_table *table))
{
    struct limit_reading *reading = table->known ? NULL : calloc(1, sizeof(*reading));

    if (!reading)
        return;
    table->known = true;
    table->reading = reading;
    limit_table_init(&reading->rows, table->loop);
    reading->task = (struct store_task){.apply = apply_reading, .done = on_read};
    list_init(&reading->task.link);
    reading->table = table;
    reading->done = done;
    store_add(store, &reading->task);
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
    drop_settings(table);
    if (table->reading)
        table->reading->table = NULL;
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

static int note_name(config_strv *list, const char *name)
{
    _cleanup_free_ char *file = list ? path_join_n("", 0, name, CONFIG_LIMIT_SUFFIX) : NULL;

    if (!list)
        return 0;
    return file ? strv_append(list, file + 1) : -ENOMEM;
}

/* A limit that groups in removal still use keeps its bounds. */
static int drop_missing(struct limit_table *table, const struct config *config,
                        config_strv *removed)
{
    int r = 0;

    list_for_each_safe (node, &table->limits) {
        struct named_limit *limit = limit_of(node);

        if (config_find_limit(config, limit->name))
            continue;
        if (limit->described && r == 0)
            r = note_name(removed, limit->name);
        limit->described = false;
        if (list_empty(&limit->limit.uses))
            free_limit(limit);
    }
    return r;
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
        r = note_name(added, limit->name);
    else if (!bounds_equal(&limit->file, &config->bounds))
        r = note_name(changed, limit->name);
    limit->described = true;
    limit->file = config->bounds;
    apply(table, limit);
    return r;
}

int limit_table_take(struct limit_table *table, const struct config *config, config_strv *added,
                     config_strv *changed, config_strv *removed)
{
    int r = drop_missing(table, config, removed);

    for (size_t i = 0; r == 0 && i < config->n_limits; i++)
        r = take(table, config->limits[i], added, changed);
    return r;
}
