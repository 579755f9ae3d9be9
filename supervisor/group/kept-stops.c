/* SPDX-License-Identifier: MIT */
#include "supervisor/group/kept-stops.h"

#include "shared/base/log.h"
#include "supervisor/store/stop-rows.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kept_stop {
    struct list link; /* in kept_stops.names or .fresh */
    char name[];
};

static struct kept_stop *stop_of(struct list *node)
{
    return list_entry(node, struct kept_stop, link);
}

static struct kept_stop *find(const struct kept_stops *stops, const char *name)
{
    list_for_each (node, &stops->names)
        if (strcmp(stop_of(node)->name, name) == 0)
            return stop_of(node);
    return NULL;
}

static int add(struct list *list, const char *name)
{
    struct kept_stop *stop = calloc(1, sizeof(*stop) + strlen(name) + 1);

    if (!stop)
        return -ENOMEM;
    (void)stpcpy(stop->name, name);
    list_push_back(list, &stop->link);
    return 0;
}

static void drop(struct kept_stop *stop)
{
    list_unlink(&stop->link);
    free(stop);
}

static void drop_all(struct list *list)
{
    list_for_each_safe (node, list)
        drop(stop_of(node));
}

void kept_stops_init(struct kept_stops *stops)
{
    list_init(&stops->names);
    list_init(&stops->fresh);
}

void kept_stops_deinit(struct kept_stops *stops)
{
    if (!stops->names.next)
        return;
    drop_all(&stops->names);
    drop_all(&stops->fresh);
}

bool kept_stops_have(const struct kept_stops *stops, const char *name)
{
    return find(stops, name);
}

int kept_stops_set(struct kept_stops *stops, const char *name, bool stopped)
{
    struct kept_stop *stop = find(stops, name);

    if (stop && !stopped)
        drop(stop);
    return !stop && stopped ? add(&stops->names, name) : 0;
}

/* ---- those of earlier runs ---- */

static int note(void *userdata, const char *name)
{
    struct kept_stops *stops = userdata;

    return add(&stops->fresh, name);
}

static int apply(struct store_task *task, struct database *database)
{
    struct kept_stops *stops = list_entry(task, struct kept_stops, reading);

    drop_all(&stops->fresh);
    return stop_rows_scan(database, note, stops);
}

static void take(struct kept_stops *stops, struct kept_stop *stop)
{
    list_unlink(&stop->link);
    list_push_back(&stops->names, &stop->link);
}

/* A stop may have been written, and known, before this was read. */
static void on_read(struct store_task *task, int result)
{
    struct kept_stops *stops = list_entry(task, struct kept_stops, reading);

    stops->is_reading = false;
    if (result == 0) {
        stops->read = true;
        list_for_each_safe (node, &stops->fresh)
            if (!find(stops, stop_of(node)->name))
                take(stops, stop_of(node));
    } else if (result != -ECANCELED) {
        log_error("which groups stay stopped cannot be read from disk: %s", strerror(-result));
    }
    drop_all(&stops->fresh);
}

void kept_stops_read(struct kept_stops *stops, struct store *store)
{
    if (stops->read || stops->is_reading)
        return;
    stops->is_reading = true;
    stops->reading = (struct store_task){.apply = apply, .done = on_read};
    list_init(&stops->reading.link);
    store_add(store, &stops->reading);
}
