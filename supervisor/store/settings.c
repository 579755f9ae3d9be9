/* SPDX-License-Identifier: MIT */
#include "supervisor/store/settings.h"

#include "shared/base/hash.h"
#include "shared/base/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void settings_init(struct settings *settings, const struct setting_rows *rows)
{
    *settings = (struct settings){.rows = rows};
    list_init(&settings->all);
    list_init(&settings->fresh);
}

static struct setting *find(const struct settings *settings, const char *name, size_t size)
{
    if (settings->by_name.n_entries == 0)
        return NULL;
    index_for_each_entry (setting, &settings->by_name, hash_bytes(name, size), struct setting,
                          by_name)
        if (strlen(setting->name) == size && memcmp(setting->name, name, size) == 0)
            return setting;
    return NULL;
}

const struct setting *settings_find(const struct settings *settings, const char *name, size_t size)
{
    return find(settings, name, size);
}

static struct setting *new_setting(const struct settings *settings, const char *name,
                                   const void *row)
{
    const size_t size = settings->rows->size, length = strlen(name) + 1;
    struct setting *setting = calloc(1, sizeof(*setting) + size + length);

    if (!setting)
        return NULL;
    list_init(&setting->link);
    memcpy(setting->row, row, size);
    setting->name = memcpy((char *)setting->row + size, name, length);
    return setting;
}

static void add(struct settings *settings, struct setting *setting)
{
    list_push_back(&settings->all, &setting->link);
    index_add(&settings->by_name, &setting->by_name,
              hash_bytes(setting->name, strlen(setting->name)));
}

static void drop(struct settings *settings, struct setting *setting)
{
    list_unlink(&setting->link);
    index_remove(&settings->by_name, &setting->by_name);
    free(setting);
}

static void drop_fresh(struct settings *settings)
{
    list_for_each_entry_safe (setting, &settings->fresh, struct setting, link) {
        list_unlink(&setting->link);
        free(setting);
    }
}

void settings_deinit(struct settings *settings)
{
    if (!settings->all.next)
        return;
    list_for_each_entry_safe (setting, &settings->all, struct setting, link)
        drop(settings, setting);
    drop_fresh(settings);
    index_deinit(&settings->by_name);
}

int settings_set(struct settings *settings, const char *name, const void *row)
{
    struct setting *setting = find(settings, name, strlen(name));

    if (setting && row)
        memcpy(setting->row, row, settings->rows->size);
    else if (setting)
        drop(settings, setting);
    if (setting || !row)
        return 0;
    setting = new_setting(settings, name, row);
    if (!setting)
        return -ENOMEM;
    add(settings, setting);
    return 0;
}

/* ---- those of earlier runs ---- */

static int note(void *userdata, const char *name, const void *row)
{
    struct settings *settings = userdata;
    struct setting *setting = new_setting(settings, name, row);

    if (!setting)
        return -ENOMEM;
    list_push_back(&settings->fresh, &setting->link);
    return 0;
}

static int apply(struct store_task *task, struct database *database)
{
    struct settings *settings = list_entry(task, struct settings, reading);

    drop_fresh(settings);
    return setting_rows_scan(database, settings->rows, note, settings);
}

/* A setting that was made since then stays. */
static void take_fresh(struct settings *settings)
{
    list_for_each_entry_safe (setting, &settings->fresh, struct setting, link) {
        if (find(settings, setting->name, strlen(setting->name)))
            continue;
        list_unlink(&setting->link);
        add(settings, setting);
    }
}

static void on_read(struct store_task *task, int result)
{
    struct settings *settings = list_entry(task, struct settings, reading);

    settings->is_reading = false;
    if (result == 0) {
        settings->read = true;
        take_fresh(settings);
    } else if (result != -ECANCELED) {
        log_error("%s cannot be read from disk: %s", settings->rows->what, strerror(-result));
    }
    drop_fresh(settings);
    if (settings->known && result != -ECANCELED)
        settings->known(settings);
}

void settings_read(struct settings *settings, struct store *store,
                   void (*known)(struct settings *settings))
{
    if (settings->read || settings->is_reading)
        return;
    settings->is_reading = true;
    settings->known = known;
    settings->reading = (struct store_task){.apply = apply, .done = on_read};
    list_init(&settings->reading.link);
    store_add(store, &settings->reading);
}
