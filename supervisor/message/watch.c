/* SPDX-License-Identifier: MIT */
#include "supervisor/message/watch.h"

#include "supervisor/context.h"
#include "supervisor/event/complaint.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/router.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void watch_free(struct watch *watch)
{
    watch->watcher->n_watching--;
    index_remove(&watch->watcher->watching_by_reference, &watch->by_watched);
    list_unlink(&watch->link);
    list_unlink(&watch->own_link);
    free(watch);
}

static int send_notice(struct actor *watcher, uint64_t reference, const char *cause)
{
    static const struct topic NONE = {.type = ""};
    struct letter *letter = letter_new(PROTOCOL_TERMINATED, &NONE);

    if (!letter)
        return -ENOMEM;
    letter->id = actor_next_id(watcher->context);
    letter->sender = reference;
    if (parcel_set(&letter->payload, cause, strnlen(cause, PROTOCOL_REASON_MAX)) < 0)
        letter->payload.size = 0;
    delivery_answer(watcher, letter);
    return 0;
}

static struct watch *watch_find(const struct actor *watcher, const struct actor *watched)
{
    struct index_entry *entry = index_find(&watcher->watching_by_reference, watched->reference);

    return entry ? list_entry(entry, struct watch, by_watched) : NULL;
}

int watch_add(struct actor *watcher, uint64_t reference)
{
    struct actor *watched = actor_get(&watcher->context->actors, reference);
    struct watch *watch;

    if (!watched)
        return send_notice(watcher, reference, "it is gone");
    if (watched->failed)
        return send_notice(watcher, reference, "it has failed: its workers died too often");
    if (watch_find(watcher, watched))
        return 0;
    if (watcher->n_watching >= ACTOR_WATCHES_MAX)
        return WATCH_E_TOO_MANY;
    watch = calloc(1, sizeof(*watch));
    if (!watch)
        return -ENOMEM;
    watch->watched = watched;
    watch->watcher = watcher;
    list_push_back(&watched->watchers, &watch->link);
    list_push_front(&watcher->watching, &watch->own_link);
    index_add(&watcher->watching_by_reference, &watch->by_watched, reference);
    watcher->n_watching++;
    return 0;
}

/* It is on its way to somebody who has ended the watch without having seen it, or never watched. */
static void bury_notice(struct actor *watcher, uint64_t reference)
{
    static const struct topic TOPIC = {.type = "terminated", .type_size = sizeof("terminated") - 1};
    const struct router_verdict verdict = {.reason = DEAD_UNKNOWN_DEATH,
                                           .text = "it does not watch who is gone"};
    struct letter *letter = letter_new(PROTOCOL_TERMINATED, &TOPIC);

    complain(watcher, LOG_LEVEL_WARNING, "a death notice for it is about something unknown");
    if (!letter)
        return;
    letter->id = actor_next_id(watcher->context);
    letter->sender = reference;
    letter->to = actor_self(watcher)->reference;
    router_bury(watcher->context, letter, actor_self(watcher), &verdict);
}

bool watch_remove(struct actor *watcher, uint64_t reference)
{
    const struct actor *watched = actor_get(&watcher->context->actors, reference);
    struct watch *watch = watched ? watch_find(watcher, watched) : NULL;

    if (!watch) {
        if (!watched || watched->failed)
            bury_notice(watcher, reference);
        return false;
    }
    watch_free(watch);
    return true;
}

void watch_drop_all(struct actor *watcher)
{
    struct list *node;

    while ((node = list_first(&watcher->watching)))
        watch_free(list_entry(node, struct watch, own_link));
}

static void watch_adopt_all(struct actor *watcher)
{
    list_for_each (node, &watcher->watching)
        list_entry(node, struct watch, own_link)->watcher = watcher;
}

void watch_swap_all(struct actor *a, struct actor *b)
{
    const struct index by_reference = a->watching_by_reference;
    const unsigned n = a->n_watching;

    list_swap(&a->watching, &b->watching);
    a->watching_by_reference = b->watching_by_reference;
    b->watching_by_reference = by_reference;
    a->n_watching = b->n_watching;
    b->n_watching = n;
    watch_adopt_all(a);
    watch_adopt_all(b);
}

void watch_tell(struct actor *watched, const char *cause)
{
    struct list *node;

    while ((node = list_first(&watched->watchers))) {
        struct watch *watch = list_entry(node, struct watch, link);
        if (send_notice(watch->watcher, watched->reference, cause) < 0)
            complain(watch->watcher, LOG_LEVEL_ERROR, "a death notice is lost: out of memory");
        watch_free(watch);
    }
}
