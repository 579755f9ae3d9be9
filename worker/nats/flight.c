/* SPDX-License-Identifier: MIT */
#include "worker/nats/flight.h"

#include "shared/base/hash.h"
#include "worker/nats/message.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What libnats adds to a header that it has read: a hash entry with a copy of the name, and a list
 * of values. */
#define HEADER_BYTES 128u

#define MESSAGE_BIN_MANY  (MESSAGE_BIN_MAX / 4)
#define MESSAGE_BIN_BYTES ((size_t)4 << 20)

static void empty(struct message_bin *bin)
{
    for (unsigned i = 0; i < bin->n; i++)
        natsMsg_Destroy(bin->messages[i]);
    bin->n = 0;
    bin->bytes = 0;
}

void message_bin_put(struct message_bin *bin, natsMsg *message)
{
    if (bin->n == MESSAGE_BIN_MAX || bin->bytes >= MESSAGE_BIN_BYTES)
        empty(bin);
    bin->messages[bin->n++] = message;
    if (message)
        bin->bytes += (size_t)natsMsg_GetDataLength(message);
}

void message_bin_serve(struct message_bin *bin, bool idle)
{
    if (idle || bin->n >= MESSAGE_BIN_MANY)
        empty(bin);
}

void flights_init(struct flights *flights)
{
    *flights = (struct flights){.index = INDEX_NULL, .period = USEC_INFINITY};
    list_init(&flights->beats);
    for (int i = 0; i < _N_FLIGHT_STATES; i++)
        list_init(&flights->lists[i]);
}

void flights_deinit(struct flights *flights)
{
    list_until_empty (flight, &flights->beats, struct flight, beat)
        flight_free(flights, flight);
    index_deinit(&flights->index);
    index_deinit(&flights->keys);
    empty(&flights->bin);
}

void flight_leave_key(struct flights *flights, struct flight *flight)
{
    struct flight_key *key = flight->key;

    flight->key = NULL;
    if (!key || --key->n > 0)
        return;
    index_remove(&flights->keys, &key->entry);
    free(key);
}

void flight_set_key(struct flights *flights, struct flight *flight, const char *key)
{
    const uint64_t hash = hash_bytes(key, strlen(key));
    struct index_entry *entry = index_find(&flights->keys, hash);
    struct flight_key *found =
        entry ? list_entry(entry, struct flight_key, entry) : calloc(1, sizeof(*found));

    if (found && !entry)
        index_add(&flights->keys, &found->entry, hash);
    if (found)
        found->n++;
    flight_leave_key(flights, flight);
    flight->key = found;
}

/* From now on, the flight has this message. */
static void set_message(struct flights *flights, struct flight *flight, natsMsg *message)
{
    unsigned n;
    size_t headers = message_headers_size(message, &n);

    flight->kind = headers == SIZE_MAX ? FLIGHT_MALFORMED : FLIGHT_WHOLE;
    if (flight->kind == FLIGHT_MALFORMED)
        headers = UINT16_MAX; /* a stream stores no more */
    flights->bytes -= flight->bytes;
    flight->bytes = (size_t)natsMsg_GetDataLength(message) + headers + (size_t)n * HEADER_BYTES;
    flights->bytes += flight->bytes;
    flight->message = message;
}

struct flight *flight_new(struct flights *flights, uint64_t sequence, natsMsg *message, usec_t now)
{
    struct flight *flight = malloc(sizeof(*flight));

    if (!flight)
        return NULL;
    *flight = (struct flight){
        .state = FLIGHT_HELD, .delivered_at = now, .heard_at = now, .result = TROUPE_RESULT_INIT};
    list_init(&flight->link);
    list_init(&flight->beat);
    list_init(&flight->question.link);
    index_add(&flights->index, &flight->entry, sequence);
    set_message(flights, flight, message);
    list_push_back(&flights->lists[FLIGHT_HELD], &flight->link);
    flight_beat_again(flights, flight, now);
    flights->n++;
    flights->counts[FLIGHT_HELD]++;
    return flight;
}

void flight_free(struct flights *flights, struct flight *flight)
{
    index_remove(&flights->index, &flight->entry);
    list_unlink(&flight->link);
    list_unlink(&flight->beat);
    list_unlink(&flight->question.link);
    flights->counts[flight->state]--;
    flights->n--;
    flights->bytes -= flight->bytes;
    flight_leave_key(flights, flight);
    troupe_result_release(&flight->result);
    message_bin_put(&flights->bin, flight->message);
    free(flight->problem);
    free(flight->job);
    free(flight->reports);
    free(flight);
}

struct flight *flight_find(const struct flights *flights, uint64_t sequence)
{
    return index_find_entry(&flights->index, sequence, struct flight, entry);
}

void flight_set_state(struct flights *flights, struct flight *flight, enum flight_state state)
{
    flights->counts[flight->state]--;
    flights->counts[state]++;
    flight->state = state;
    if (state >= FLIGHT_DONE)
        flight_leave_key(flights, flight);
    list_unlink(&flight->link);
    list_push_back(&flights->lists[state], &flight->link);
}

void flight_redelivered(struct flights *flights, struct flight *flight, natsMsg *message,
                        usec_t now)
{
    natsMsg_Destroy(flight->message);
    set_message(flights, flight, message);
    flight->delivered_at = flight->heard_at = now;
}

bool flight_is_ours(const struct flights *flights, const struct flight *flight, usec_t now)
{
    return usec_sub(now, flight->heard_at) / FLIGHT_SAFE_PERIODS <= flights->period;
}

void flight_heard(const struct flights *flights, struct flight *flight, usec_t now)
{
    if (flight_is_ours(flights, flight, now))
        flight->heard_at = now;
}

void flights_set_period(struct flights *flights, usec_t period, usec_t now)
{
    const usec_t before = flights->period;

    if (period == before)
        return;
    flights->period = period;
    /* All change by the same, so the order stays. */
    list_for_each_entry (flight, &flights->beats, struct flight, beat) {
        const usec_t last = before == USEC_INFINITY ? now : usec_sub(flight->beat_at, before);

        flight->beat_at = usec_add(last, period);
    }
}

void flight_beat_again(struct flights *flights, struct flight *flight, usec_t now)
{
    flight->beat_at = usec_add(now, flights->period);
    list_unlink(&flight->beat);
    list_push_back(&flights->beats, &flight->beat);
}

void flight_id(const struct flight *flight, const char *stream, char id[static TROUPE_ID_SIZE])
{
    const int n = snprintf(id, TROUPE_ID_SIZE, "%s:%" PRIu64, stream, flight_sequence(flight));

    if (flight->tries > 0)
        (void)snprintf(id + n, TROUPE_ID_SIZE - (size_t)n, ":%u", flight->tries);
}
