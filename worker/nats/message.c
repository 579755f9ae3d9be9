/* SPDX-License-Identifier: MIT */
#include "worker/nats/message.h"

#include "shared/base/quantity.h"
#include "shared/protocol/job-options.h"
#include "shared/protocol/traceparent.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The address for acknowledgements describes a message (ADR-15 of
 * nats-architecture-and-design): $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.NUMBER.TIME.…, 9 parts,
 * or $JS.ACK.DOMAIN.ACCOUNT.STREAM.CONSUMER.DELIVERED.SEQUENCE.NUMBER.TIME.…, 11 parts or more.
 */
#define ACK_PREFIX        "$JS.ACK."
#define ACK_PARTS_OLD     9u
#define ACK_PARTS_NEW_MIN 11u
#define SEQUENCE_OLD      5u
#define SEQUENCE_NEW      7u
/* Relative to the sequence. */
#define STREAM_OFFSET    (-3)
#define DELIVERED_OFFSET (-1)
#define TIME_OFFSET      2

/* At most so many headers are measured. libnats may compare each to all others, since a sender can
 * choose names with the same hash. */
#define NAMES_MAX 2000
/* The limit of a stream for all headers, and the shortest header: ":", a value and LF; bytes. */
#define HEADERS_MAX UINT16_MAX
#define LINE_MIN    3u

static unsigned count_parts(const char *text)
{
    unsigned n = 1;

    for (; *text != '\0'; text++)
        n += *text == '.';
    return n;
}

static const char *part(const char *text, int number)
{
    while (number-- > 0)
        text = strchr(text, '.') + 1;
    return text;
}

/* Returns the text from the part at `offset` on; NULL = JetStream has not delivered the message. */
static const char *find_part(natsMsg *message, int offset)
{
    const char *reply = natsMsg_GetReply(message);
    unsigned n;

    if (!reply || strncmp(reply, ACK_PREFIX, strlen(ACK_PREFIX)) != 0)
        return NULL;
    n = count_parts(reply);
    if (n != ACK_PARTS_OLD && n < ACK_PARTS_NEW_MIN)
        return NULL;
    n = n == ACK_PARTS_OLD ? SEQUENCE_OLD : SEQUENCE_NEW;
    return part(reply, (int)n + offset);
}

static int read_part(natsMsg *message, int offset, uint64_t *ret)
{
    const char *text = find_part(message, offset), *end;

    return text && quantity_parse_number(text, ret, &end) == 0 && *end == '.' && *ret > 0
               ? 0
               : -EBADMSG;
}

/* If the first part is this name, returns the text after it; otherwise NULL. */
static const char *skip_name(const char *text, const char *name)
{
    const size_t length = strlen(name);

    return text && strncmp(text, name, length) == 0 && text[length] == '.' ? text + length + 1
                                                                           : NULL;
}

int message_sequence(natsMsg *message, const char *stream, const char *consumer, uint64_t *ret)
{
    if (!skip_name(skip_name(find_part(message, STREAM_OFFSET), stream), consumer))
        return -EBADMSG;
    return read_part(message, 0, ret);
}

/* Servers find an acknowledged message by its sequence (consumer.go, processAckMsg and
 * progressUpdate). The delivery number is one that no delivery has, so it moves no floor. */
#define STAND_IN_FORMAT ACK_PREFIX "%s.%s.1.%" PRIu64 ".2147483647.0.0"

natsMsg *message_stand_in(const char *stream, const char *consumer, uint64_t sequence)
{
    natsMsg *message = NULL;
    char reply[512];

    (void)snprintf(reply, sizeof(reply), STAND_IN_FORMAT, stream, consumer, sequence);
    return natsMsg_Create(&message, MESSAGE_SUBJECT MESSAGE_KEY_ANY, reply, NULL, 0) == NATS_OK
               ? message
               : NULL;
}

uint64_t message_deliveries(natsMsg *message)
{
    uint64_t n;

    return read_part(message, DELIVERED_OFFSET, &n) == 0 ? n : 1;
}

usec_t message_due(natsMsg *message, usec_t delay, usec_t received_at)
{
    uint64_t stored_at;
    usec_t due = received_at;

    if (read_part(message, TIME_OFFSET, &stored_at) == 0)
        due = stored_at / NSEC_PER_USEC;
    due = usec_add(due < received_at ? due : received_at, delay);
    return due > received_at ? due : received_at;
}

/* Adds the bytes and the number of the lines with this name. */
static natsStatus measure_header(natsMsg *message, const char *name, size_t *size, unsigned *n)
{
    const char **values;
    int n_values = 0;
    natsStatus s = natsMsgHeader_Values(message, name, &values, &n_values);

    if (s != NATS_OK)
        return s;
    for (int i = 0; i < n_values; i++)
        *size += strlen(name) + strlen(": \r\n") + strlen(values[i]);
    *n += (unsigned)n_values;
    free((void *)values);
    return NATS_OK;
}

size_t message_headers_size(natsMsg *message, unsigned *ret_n)
{
    size_t size = sizeof("NATS/1.0\r\n\r\n");
    const char **names;
    int n = 0;
    natsStatus s = natsMsgHeader_Keys(message, &names, &n);

    *ret_n = 0;
    if (s != NATS_OK)
        return s == NATS_NOT_FOUND ? 0 : SIZE_MAX;
    if (n > NAMES_MAX) {
        free((void *)names);
        *ret_n = HEADERS_MAX / LINE_MIN;
        return HEADERS_MAX;
    }
    for (int i = 0; i < n && s == NATS_OK; i++)
        s = measure_header(message, names[i], &size, ret_n);
    free((void *)names);
    return s == NATS_OK ? size : SIZE_MAX;
}

static const char *header(natsMsg *message, const char *name)
{
    const char *value;

    return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : NULL;
}

/* Returns the part of the subject after jobs.GROUP.; NULL = none. */
static const char *key_of_subject(const char *subject)
{
    const char *dot = NULL;

    if (strncmp(subject, MESSAGE_SUBJECT, strlen(MESSAGE_SUBJECT)) == 0)
        dot = strchr(subject + strlen(MESSAGE_SUBJECT), '.');
    return dot ? dot + 1 : NULL;
}

static bool is_any(const char *key)
{
    const char *dot = strrchr(key, '.');

    return strcmp(dot ? dot + 1 : key, MESSAGE_KEY_ANY) == 0;
}

const char *message_key(natsMsg *message)
{
    const char *chosen = header(message, MESSAGE_HEADER_KEY);

    return chosen ? chosen : key_of_subject(natsMsg_GetSubject(message));
}

/* A sender with permission for some subjects must not reach other keys by a header. */
static const char *set_key(natsMsg *message, struct troupe_job_options *options)
{
    const char *own = key_of_subject(natsMsg_GetSubject(message));
    const char *chosen = header(message, MESSAGE_HEADER_KEY);
    const char *key = message_key(message);

    if (chosen && own && !is_any(own) && strcmp(chosen, own) != 0)
        return MESSAGE_HEADER_KEY ": the subject has another key; allowed: a subject that ends in "
                                  "." MESSAGE_KEY_ANY;
    if (!key)
        return NULL;
    options->key = key;
    options->key_size = strlen(key);
    return options->key_size > 255 ? MESSAGE_HEADER_KEY ": more than 255 bytes" : NULL;
}

static const char *set_priority(natsMsg *message, struct troupe_job_options *options)
{
    const char *text = header(message, MESSAGE_HEADER_PRIORITY), *end;
    uint64_t priority;

    if (!text)
        return NULL;
    if (quantity_parse_number(text, &priority, &end) < 0 || *end != '\0' || priority > 63)
        return MESSAGE_HEADER_PRIORITY ": no valid value; allowed: a number from 0 (first) to 63";
    options->priority = (int)priority;
    return NULL;
}

static const char *set_times(natsMsg *message, struct troupe_job_options *options)
{
    const char *delay = header(message, MESSAGE_HEADER_DELAY);
    const char *timeout = header(message, MESSAGE_HEADER_TIMEOUT);

    if (delay && (quantity_parse_time(delay, &options->delay_usec) < 0 ||
                  options->delay_usec > JOB_DELAY_MAX))
        return MESSAGE_HEADER_DELAY
            ": no valid value; allowed: a time such as 500ms, 30s or 5min, at most 366 days";
    if (timeout &&
        (quantity_parse_time(timeout, &options->timeout_usec) < 0 || options->timeout_usec == 0))
        return MESSAGE_HEADER_TIMEOUT
            ": no valid value; allowed: a time such as 500ms, 30s or 5min, more than 0";
    return NULL;
}

/* An invalid one is ignored, as W3C Trace Context says: it is no reason to refuse the job. */
static void set_traceparent(natsMsg *message, struct troupe_job_options *options)
{
    const char *text = header(message, MESSAGE_HEADER_TRACE);

    if (text && traceparent_valid(text, strnlen(text, TRACEPARENT_SIZE + 1)))
        options->traceparent = text;
}

const char *message_options(natsMsg *message, struct troupe_job_options *ret)
{
    const char *problem;

    *ret = (struct troupe_job_options)TROUPE_JOB_DEFAULTS;
    ret->keep_result = true;
    set_traceparent(message, ret);
    problem = set_key(message, ret);
    if (!problem)
        problem = set_priority(message, ret);
    return problem ? problem : set_times(message, ret);
}
