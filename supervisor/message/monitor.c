/* SPDX-License-Identifier: MIT */
#include "supervisor/message/monitor.h"

#include "shared/base/cleanup.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/undeliverable.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void monitor_free(struct monitor *monitor)
{
    monitor->observer->n_monitoring--;
    index_remove(&monitor->observer->monitoring_by_reference, &monitor->by_monitored);
    list_unlink(&monitor->link);
    list_unlink(&monitor->own_link);
    free(monitor);
}

static int send_notice(struct actor *observer, uint64_t reference, const char *cause)
{
    const struct protocol_terminated terminated = {
        .reference = reference,
        .cause = cause,
        .cause_size = (uint32_t)strnlen(cause, PROTOCOL_REASON_MAX),
    };
    uint8_t body[PROTOCOL_BODY_MAX];

    return actor_answer_record(observer, PROTOCOL_TERMINATED, body,
                               protocol_put_terminated(body, sizeof(body), &terminated));
}

static struct monitor *monitor_find(const struct actor *observer, const struct actor *monitored)
{
    return index_find_entry(&observer->monitoring_by_reference, monitored->reference,
                            struct monitor, by_monitored);
}

int monitor_add(struct actor *observer, uint64_t reference)
{
    struct actor *monitored = actor_get(observer->context, reference);
    struct monitor *monitor;

    if (!monitored)
        return send_notice(observer, reference, "it is gone");
    if (monitored->failed)
        return send_notice(observer, reference, "it has failed: its workers died too often");
    if (monitor_find(observer, monitored))
        return 0;
    if (observer->n_monitoring >= ACTOR_MONITORS_MAX)
        return MONITOR_E_TOO_MANY;
    monitor = calloc(1, sizeof(*monitor));
    if (!monitor)
        return -ENOMEM;
    monitor->monitored = monitored;
    monitor->observer = observer;
    list_push_back(&monitored->observers, &monitor->link);
    list_push_front(&observer->monitoring, &monitor->own_link);
    index_add(&observer->monitoring_by_reference, &monitor->by_monitored, reference);
    observer->n_monitoring++;
    return 0;
}

/* A notice whose observer has ended its monitor, or never had one, becomes a dead letter. */
static void reject_notice(struct actor *observer, uint64_t reference)
{
    static const struct topic TOPIC = {.type = "terminated", .type_size = sizeof("terminated") - 1};
    const struct undeliverable why = {.reason = DEAD_UNKNOWN_DEATH,
                                      .text = "the recipient does not monitor it"};
    struct envelope *envelope = envelope_new(PROTOCOL_TERMINATED, &TOPIC);

    actor_log(observer, LOG_LEVEL_WARNING,
              "is notified of the end of an actor that it does not monitor");
    if (!envelope)
        return;
    envelope->id = message_context_next_id(observer->context);
    envelope->sender = reference;
    envelope->to = actor_self(observer)->reference;
    undeliverable_end(observer->context, envelope, actor_self(observer), &why);
}

bool monitor_remove(struct actor *observer, uint64_t reference)
{
    const struct actor *monitored = actor_get(observer->context, reference);
    struct monitor *monitor = monitored ? monitor_find(observer, monitored) : NULL;

    if (!monitor) {
        if (!monitored || monitored->failed)
            reject_notice(observer, reference);
        return false;
    }
    monitor_free(monitor);
    return true;
}

void monitor_end_all(struct actor *observer)
{
    list_until_empty (monitor, &observer->monitoring, struct monitor, own_link)
        monitor_free(monitor);
}

static void monitor_adopt_all(struct actor *observer)
{
    list_for_each_entry (monitor, &observer->monitoring, struct monitor, own_link)
        monitor->observer = observer;
}

void monitor_swap_all(struct actor *a, struct actor *b)
{
    list_swap(&a->monitoring, &b->monitoring);
    SWAP(a->monitoring_by_reference, b->monitoring_by_reference);
    SWAP(a->n_monitoring, b->n_monitoring);
    monitor_adopt_all(a);
    monitor_adopt_all(b);
}

void monitor_notify(struct actor *monitored, const char *cause)
{
    list_until_empty (monitor, &monitored->observers, struct monitor, link) {
        if (send_notice(monitor->observer, monitored->reference, cause) < 0)
            actor_log(monitor->observer, LOG_LEVEL_ERROR, "a death notice is lost: out of memory");
        monitor_free(monitor);
    }
}

/* ---- across an upgrade ---- */

struct monitor_row {
    uint64_t monitored, observer;
};

#define ROW monitor_row
#define MONITOR_FIELDS(F)                                                                          \
    F(UPGRADE, monitored, NUMBER(monitored))                                                       \
    F(UPGRADE, observer, NUMBER(observer))
const struct record MONITOR_RECORD = RECORD("monitor", MONITOR_FIELDS);

/* In the order in which they are notified. */
void monitors_save(const struct actor *monitored, struct saver *saver)
{
    list_for_each_entry (monitor, &monitored->observers, struct monitor, link) {
        const struct monitor_row row = {monitored->reference, monitor->observer->reference};

        record_save(saver, &MONITOR_RECORD, &row, NULL);
    }
}

int monitor_restore_row(struct message_context *context, struct saved_reader *reader)
{
    struct monitor_row row = {0};
    struct actor *observer;
    int r;

    record_get(reader, &MONITOR_RECORD, &row);
    if (reader->damaged || row.monitored == 0)
        return -EBADMSG;
    observer = actor_get(context, row.observer);
    if (!observer || !observer->inbox.endpoint)
        return 0; /* the caller has gone */
    r = monitor_add(observer, row.monitored);
    return r == MONITOR_E_TOO_MANY ? -EBADMSG : r;
}
