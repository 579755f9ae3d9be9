/* SPDX-License-Identifier: MIT */

/* Reads a client's answers, and keeps those that no call waits for. */

#include "worker/client/client.h"
#include "worker/public.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The space of so many records is released together. */
#define BATCH 64u

/* ---- memory of results ---- */

void results_init(struct results *results)
{
    list_init(&results->queue);
    list_init(&results->given);
}

static int results_take(struct results *results, size_t size, struct result_slot **ret)
{
    struct result_slot *slot = malloc(sizeof(*slot) + size);

    if (!slot)
        return -ENOMEM;
    slot->map = NULL;
    list_init(&slot->link);
    list_push_back(&results->given, &slot->link);
    *ret = slot;
    return 0;
}

static void results_give(struct result_slot *slot)
{
    if (slot->map)
        (void)munmap(slot->map, slot->map_size);
    list_unlink(&slot->link);
    free(slot);
}

/* Appends a result to the queue, which takes it over unless this returns -ENOMEM. */
static int results_queue(struct results *results, const struct troupe_result *result)
{
    struct result_slot *slot = result->internal;

    if (!slot) {
        int r = results_take(results, 0, &slot);

        if (r < 0)
            return r;
    }
    slot->queued = *result;
    slot->queued.internal = slot;
    list_unlink(&slot->link);
    list_push_back(&results->queue, &slot->link);
    return 0;
}

bool results_dequeue(struct results *results, struct troupe_result *ret)
{
    struct list *node = list_first(&results->queue);

    if (!node)
        return false;
    *ret = list_entry(node, struct result_slot, link)->queued;
    list_unlink(node);
    list_push_back(&results->given, node);
    return true;
}

static void give_all(struct list *list)
{
    list_for_each_entry_safe (slot, list, struct result_slot, link)
        results_give(slot);
}

void results_deinit(struct results *results)
{
    give_all(&results->queue);
    give_all(&results->given);
}

_public_ void troupe_result_release(struct troupe_result *result)
{
    if (result->internal)
        results_give(result->internal);
    result->internal = NULL;
    result->data = result->reason = "";
    result->size = 0;
}

/* ---- reading ---- */

/* Copies reason and inline data into a slot of the result, each with a NUL. */
static int keep(struct troupe_client *client, struct troupe_result *result, const void *reason,
                uint32_t reason_size, const struct payload_wire *payload)
{
    size_t data_size = payload->form == PAYLOAD_INLINE ? (size_t)payload->size : 0;
    struct result_slot *slot;
    int r;

    if (reason_size == 0 && data_size == 0 && payload->form == PAYLOAD_INLINE)
        return 0;
    r = results_take(&client->results, data_size + reason_size + 2, &slot);
    if (r < 0)
        return r;
    if (data_size > 0)
        memcpy(slot->bytes, payload->data, data_size);
    slot->bytes[data_size] = '\0';
    if (reason_size > 0)
        memcpy(slot->bytes + data_size + 1, reason, reason_size);
    slot->bytes[data_size + 1 + reason_size] = '\0';
    result->internal = slot;
    result->data = slot->bytes;
    result->size = data_size;
    result->reason = slot->bytes + data_size + 1;
    return 0;
}

static int map_blob(struct troupe_client *client, struct troupe_result *result,
                    const struct payload_wire *payload)
{
    struct result_slot *slot = result->internal;
    int r = payload_receive_blob(client->carrier.control, payload, &result->data);

    if (r < 0)
        return r;
    slot->map = (void *)(uintptr_t)result->data;
    slot->map_size = result->size = (size_t)payload->size;
    return 0;
}

static int read_done(struct troupe_client *client, const struct protocol_done *done,
                     struct troupe_result *ret)
{
    int r;

    ret->end = (enum troupe_end)done->end;
    ret->cause = (enum troupe_cause)done->cause;
    ret->code = done->code;
    ret->attempts = done->attempts;
    protocol_id_format(&done->id, ret->id);
    r = keep(client, ret, done->reason, done->reason_size, &done->payload);
    if (r < 0 || done->payload.form != PAYLOAD_BLOB)
        return r;
    r = map_blob(client, ret, &done->payload);
    if (r < 0)
        troupe_result_release(ret);
    if (r == 0 || r == -EPROTO)
        return r;
    /* Out of descriptors or memory: the job has ended, but its result is lost. */
    ret->error = r;
    ret->reason = "the result could not be mapped";
    return 0;
}

static int read_refused(struct troupe_client *client, const struct protocol_refused *refused,
                        struct troupe_result *ret)
{
    const struct payload_wire nothing = {.form = PAYLOAD_INLINE};

    if (refused->error == ENOTUNIQ)
        protocol_id_format(&refused->holder, ret->id);
    ret->error = refused->error > 0 && refused->error < 4096 ? -(int)refused->error : -EPROTO;
    return keep(client, ret, refused->reason, refused->reason_size, &nothing);
}

/* Returns 0, -ENOMEM, or another -errno if the record is corrupt. */
static int read_record(struct troupe_client *client, const struct ring_record *record,
                       struct answer *ret)
{
    union {
        struct protocol_done done;
        struct protocol_refused refused;
        struct protocol_accepted accepted;
        struct protocol_found found;
    } wire;
    int r;

    switch (record->kind) {
    case PROTOCOL_DONE:
        r = protocol_get_done(record->body, record->size, &wire.done);
        ret->number = wire.done.cookie;
        return r < 0 ? r : read_done(client, &wire.done, &ret->result);
    case PROTOCOL_REFUSED:
        r = protocol_get_refused(record->body, record->size, &wire.refused);
        ret->number = wire.refused.cookie;
        return r < 0 ? r : read_refused(client, &wire.refused, &ret->result);
    case PROTOCOL_ACCEPTED:
        r = protocol_get_accepted(record->body, record->size, &wire.accepted);
        ret->number = wire.accepted.cookie;
        protocol_id_format(&wire.accepted.id, ret->result.id);
        ret->existing = wire.accepted.existing;
        return r;
    case PROTOCOL_FOUND:
        r = protocol_get_found(record->body, record->size, &wire.found);
        ret->number = wire.found.cookie;
        ret->group = wire.found.group;
        return r;
    default:
        return -EPROTO;
    }
}

/*
 * Returns 0, 1 if no call waits for it any more, -ENOMEM, or another -errno if the record is
 * corrupt.
 */
static int take_answer(struct troupe_client *client, const struct ring_record *record,
                       struct answer *ret)
{
    const struct pending_request *request;
    bool unwanted;
    int r;

    ret->kind = (enum protocol_kind)record->kind;
    ret->result = (struct troupe_result){.reason = "", .data = ""};
    ret->existing = false;
    r = read_record(client, record, ret);
    if (r < 0)
        return r;
    request = pending_get(&client->pending, ret->number);
    unwanted = request && request->unwanted;
    r = pending_give(&client->pending, ret->number, &ret->result.cookie);
    if (!unwanted && (r == 0 || !client->restarted))
        return r;
    /* A CANCEL that overtook other requests is answered again by the next supervisor. */
    troupe_result_release(&ret->result);
    return 1;
}

static int take_record(struct troupe_client *client, struct answer *ret)
{
    for (;;) {
        struct ring_consumer before = client->carrier.channel.in;
        struct ring_record record;
        bool more;
        int r = carrier_next(&client->carrier, &record);

        if (r != 0)
            return r;
        more = actor_takes(&record);
        if (more)
            r = actor_receive(&client->actor, &record, before.head);
        else
            r = take_answer(client, &record, ret);
        if (r == -ENOMEM)
            /* It is not released yet, so it can be read again when there is memory. */
            client->carrier.channel.in = before;
        if (r < 0)
            return r == -ENOMEM ? r : -EPROTO;
        client->unreleased++;
        if (!more && r == 0)
            return 0;
    }
}

int answer_next(struct troupe_client *client, struct answer *ret)
{
    int r;

    /* Publishes this side's cursors before it reads the supervisor's. */
    if (client->carrier.channel.in.head == client->carrier.channel.in.tail ||
        client->unreleased >= BATCH) {
        troupe_client_flush(client);
        channel_release(&client->carrier.channel);
        client->unreleased = 0;
    }
    r = take_record(client, ret);
    if (r != -EPROTO)
        return r;
    client->carrier.over = true;
    return -EPIPE;
}

int answer_queue(struct troupe_client *client, struct answer *answer)
{
    int r = results_queue(&client->results, &answer->result);

    if (r < 0) {
        troupe_result_release(&answer->result);
        client->carrier.over = true;
    }
    return r;
}
