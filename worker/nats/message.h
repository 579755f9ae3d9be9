/* SPDX-License-Identifier: MIT */
#pragma once

/* A message of a stream as a job: its id is STREAM:SEQUENCE, its key what follows jobs.GROUP. in
 * the subject, or the header Troupe-Key, if that ends in "any". */

#include "shared/base/clock.h"
#include "worker/troupe.h"
#include <nats/nats.h>

#define MESSAGE_SUBJECT "jobs."

/* The last part of a subject if there is no key, or one that cannot be a part. */
#define MESSAGE_KEY_ANY "any"

#define MESSAGE_HEADER_KEY      "Troupe-Key"
#define MESSAGE_HEADER_PRIORITY "Troupe-Priority"
#define MESSAGE_HEADER_DELAY    "Troupe-Delay"
#define MESSAGE_HEADER_TIMEOUT  "Troupe-Timeout"

enum {
    _MESSAGE_E_SUCCESS,
    MESSAGE_E_BAD, /* it can never be a job */
};

/* Finds the number of the message in its stream. Returns 0, or -EBADMSG if it is not one that this
 * consumer has delivered: who knows where messages come can have another one deliver there. */
int message_sequence(natsMsg *message, const char *stream, const char *consumer, uint64_t *ret);

/* Makes an empty message by which one can be acknowledged that was delivered before; it cannot be
 * given back: then it is delivered again after AckWait. Returns NULL without memory. */
natsMsg *message_stand_in(const char *stream, const char *consumer, uint64_t sequence);

/* How often the message has been delivered, this time included; 1 if that cannot be told. */
uint64_t message_deliveries(natsMsg *message);

/* When the job may begin first, if it came at `received_at`: so long after the stream has stored
 * the message, by the clocks of server and machine (since 1970), but not longer after it came. */
usec_t message_due(natsMsg *message, usec_t delay, usec_t received_at);

#define MESSAGE_MALFORMED "the headers are malformed"

/* Returns the bytes of a message's headers on the wire, SIZE_MAX if they cannot be read, and how
 * many they are; of very many, as many as there can be at most. libnats tells that they cannot be
 * read only who reads them first. */
size_t message_headers_size(natsMsg *message, unsigned *ret_n);

/*
 * Fills in what the sender has chosen; texts are borrowed from the message, and `id` stays unset.
 * Returns 0, or MESSAGE_E_BAD with `*ret_problem`, which is static: what is wrong and what is
 * allowed.
 */
int message_options(natsMsg *message, struct troupe_job_options *ret, const char **ret_problem);
