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
#define MESSAGE_HEADER_TRACE    "traceparent" /* of W3C Trace Context */

/* Finds the sequence of the message in its stream. Returns 0, or -EBADMSG if this consumer has not
 * delivered it: others can make another consumer deliver messages here. */
int message_sequence(natsMsg *message, const char *stream, const char *consumer, uint64_t *ret);

/* Makes an empty message that stands in for one that was delivered before: it can be acknowledged,
 * but not given back. Returns NULL without memory. */
natsMsg *message_stand_in(const char *stream, const char *consumer, uint64_t sequence);

/* Returns how often the message has been delivered, including this time; 1 if unknown. */
uint64_t message_deliveries(natsMsg *message);

/* Returns the earliest start of the job, which arrived at `received_at`: `delay` after the stream
 * has stored the message, by the clocks of server and machine (since 1970), but at most `delay`
 * after `received_at`. */
usec_t message_due(natsMsg *message, usec_t delay, usec_t received_at);

/* Returns the size of a message's headers on the wire, SIZE_MAX if they cannot be read, and their
 * number; for very many, the possible maximum. libnats reports unreadable headers only to the first
 * call that reads them. */
size_t message_headers_size(natsMsg *message, unsigned *ret_n);

/* Returns the key of its job, borrowed from the message; NULL = none. */
const char *message_key(natsMsg *message);

/* Fills in the options that the sender has set. Texts are borrowed from the message, and `id` stays
 * unset. Returns NULL, or why it can never be a job: what is wrong and what is allowed. */
const char *message_options(natsMsg *message, struct troupe_job_options *ret);
