/* SPDX-License-Identifier: MIT */
#include "supervisor/group/limit-table.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define limit_of(node) list_entry(node, struct named_limit, link)

static const struct config_bounds CLOSED = {.burst = 1, .running = 0};

void limit_table_init(struct limit_table *table, struct loop *loop)
{
    *table = (struct limit_table){.loop = loop};
    list_init(&table->limits);
}

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
    limit_set_bounds(&limit->limit, &limit->file);
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
