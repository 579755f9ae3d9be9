/* SPDX-License-Identifier: MIT */
#include "supervisor/event/event.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "supervisor/event/limited-log.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int event_bus_init(struct event_bus *bus)
{
    *bus = (struct event_bus){.kept = calloc(EVENTS_KEPT, sizeof(struct event))};
    list_init(&bus->subscribers);
    list_init(&bus->line_subscribers);
    return bus->kept ? 0 : -ENOMEM;
}

static void event_clear(struct event *event)
{
    free((char *)event->group);
    free((char *)event->cell);
    free((char *)event->worker);
    free((char *)event->job);
    free((char *)event->message);
    death_unref(event->death);
    *event = (struct event){0};
}

void event_bus_deinit(struct event_bus *bus)
{
    for (size_t i = 0; bus->kept && i < bus->n_kept; i++)
        event_clear(&bus->kept[i]);
    free(TAKE_PTR(bus->kept));
    bus->n_kept = 0;
    index_deinit(&bus->job_subscribers);
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* Best effort: strings that cannot be copied are omitted. */
static void event_keep(struct event_bus *bus, const struct event *event)
{
    struct event *place = &bus->kept[bus->next];

    event_clear(place);
    *place = *event;
    place->group = copy(event->group);
    place->cell = copy(event->cell);
    place->worker = copy(event->worker);
    place->job = copy(event->job);
    place->message = copy(event->message);
    if (place->death)
        death_ref(place->death);
    bus->next = (bus->next + 1) % EVENTS_KEPT;
    if (bus->n_kept < EVENTS_KEPT)
        bus->n_kept++;
}

void event_publish(struct list *subscribers, const struct event *event)
{
    list_for_each_entry_safe (subscriber, subscribers, struct event_subscriber, link)
        subscriber->fn(subscriber, event);
}

/* ---- events of single jobs ---- */

#define ALL_GROUPS 0

static uint64_t key_of(const char *target)
{
    return target ? hash_bytes(target, share_owner_size(target)) : ALL_GROUPS;
}

void event_subscribe_jobs(struct event_bus *bus, struct job_subscriber *subscriber,
                          const char *target)
{
    index_add(&bus->job_subscribers, &subscriber->by_group, key_of(target));
    subscriber->linked = true;
    bus->n_untraced += subscriber->untraced;
}

void event_unsubscribe_jobs(struct event_bus *bus, struct job_subscriber *subscriber)
{
    if (!subscriber->linked)
        return;
    index_remove(&bus->job_subscribers, &subscriber->by_group);
    subscriber->linked = false;
    bus->n_untraced -= subscriber->untraced;
}

/* Returns the first of these, or of those after it, that wants the event. */
static struct job_subscriber *next_subscriber(struct index_entry *entry, bool traced)
{
    for (; entry; entry = index_find_next(entry)) {
        struct job_subscriber *subscriber = list_entry(entry, struct job_subscriber, by_group);

        if (traced || subscriber->untraced)
            return subscriber;
    }
    return NULL;
}

bool event_job_wanted(const struct event_bus *bus, const char *group, bool traced)
{
    const struct index *index = &bus->job_subscribers;

    return (traced || bus->n_untraced > 0) &&
           (next_subscriber(index_find(index, ALL_GROUPS), traced) ||
            next_subscriber(index_find(index, key_of(group)), traced));
}

static void publish_to(struct index_entry *first, const struct event *event)
{
    const bool traced = event->traceparent != NULL;
    struct job_subscriber *next = next_subscriber(first, traced), *subscriber;

    while ((subscriber = next)) {
        next = next_subscriber(index_find_next(&subscriber->by_group), traced);
        subscriber->fn(subscriber, event);
    }
}

void event_publish_job(struct event_bus *bus, const struct event *event)
{
    publish_to(index_find(&bus->job_subscribers, ALL_GROUPS), event);
    publish_to(index_find(&bus->job_subscribers, key_of(event->group)), event);
}

/* ---- all other events ---- */

static void event_log(struct event_bus *bus, const struct event *event)
{
    const struct limited_line line = {
        .level = event->level,
        .subject = event->group,
        .kind = event->type,
        .text = event->message,
    };

    if (!limited_log_admits(bus->log, &line))
        return;
    log_write(event->level,
              LOG_FIELDS({"TROUPE_EVENT", event->type}, {"TROUPE_GROUP", event->group},
                         {"TROUPE_CELL", event->cell}, {"TROUPE_WORKER", event->worker},
                         {"TROUPE_JOB", event->job}, {"MESSAGE_ID", event->message_id}),
              "%s", event->message);
}

void event_emit(struct event_bus *bus, struct event event)
{
    event.id = ++bus->last_id;
    if (event.at == 0)
        event.at = clock_realtime();
    event_log(bus, &event);
    event_keep(bus, &event);
    event_publish(&bus->subscribers, &event);
}

void event_tell(struct event_bus *bus, struct event event, const char *subject, const char *format,
                va_list arguments)
{
    char message[1024];
    int n = snprintf(message, sizeof(message), "%s ", subject);

    assert(n > 0 && (size_t)n < sizeof(message)); /* names are short */
    (void)vsnprintf(message + n, sizeof(message) - (size_t)n, format, arguments);
    event.message = message;
    event_emit(bus, event);
}

void event_locate(struct event_bus *bus, struct death *death)
{
    char group[DEATH_WORKER_MAX], message[1024];

    if (!death->top)
        return;
    (void)snprintf(group, sizeof(group), "%.*s", (int)share_owner_size(death->worker),
                   death->worker);
    (void)snprintf(message, sizeof(message), "%s was in %s", death->worker, death->top);
    event_emit(bus, (struct event){
                        .level = LOG_LEVEL_INFO,
                        .type = "worker.located",
                        .group = group,
                        .worker = death->worker,
                        .generation = death->generation,
                        .job = death->job[0] != '\0' ? death->job : NULL,
                        .message = message,
                        .quotes = true,
                        .death = death,
                    });
}

const struct event *event_kept(const struct event_bus *bus, size_t i)
{
    if (i >= bus->n_kept)
        return NULL;
    return &bus->kept[(bus->next + EVENTS_KEPT - bus->n_kept + i) % EVENTS_KEPT];
}

const struct event *event_after(const struct event_bus *bus, uint64_t id)
{
    const uint64_t oldest = bus->last_id - bus->n_kept + 1;

    return event_kept(bus, id < oldest ? 0 : (size_t)(id - oldest + 1));
}
