/* SPDX-License-Identifier: MIT */
#include "worker/nats/publication.h"

#include "shared/base/cleanup.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* What headers may take of a message, besides death reports. */
#define HEADERS_MAX 4096u
/* The end of a message that can never be a job. */
#define END_REFUSED "refused"

/* A message with this id is stored once within the stream's time for doubles. */
#define HEADER_ID "Nats-Msg-Id"
/* With 0: stored only if the subject has no message yet, whenever that came. */
#define HEADER_ONCE "Nats-Expected-Last-Subject-Sequence"
/* JSStreamWrongLastSequenceErr: it has one. */
#define ERROR_NOT_ONCE 10071

static natsStatus set_number(natsMsg *message, const char *name, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    return natsMsgHeader_Set(message, name, text);
}

/* A header is one line. */
static natsStatus set_text(natsMsg *message, const char *name, const char *text)
{
    _cleanup_free_ char *line = strdup(text);

    if (!line)
        return NATS_NO_MEMORY;
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return natsMsgHeader_Set(message, name, line);
}

static const char *reason_of(const struct flight *flight)
{
    return flight->problem ? flight->problem : flight->result.reason;
}

static natsStatus set_common(natsMsg *message, const struct config *config,
                             const struct flight *flight, const char *suffix)
{
    char id[128];
    natsStatus s;

    (void)snprintf(id, sizeof(id), "%s:%" PRIu64 "%s", config->stream, flight_sequence(flight),
                   suffix);
    s = natsMsgHeader_Set(message, HEADER_ID, id);
    flight_id(flight, config->stream, id);
    if (s == NATS_OK)
        s = natsMsgHeader_Set(message, "Troupe-Job", id);
    if (s == NATS_OK)
        s = natsMsgHeader_Set(message, "Troupe-End",
                              flight->problem ? END_REFUSED : troupe_end_name(flight->result.end));
    if (s == NATS_OK && *reason_of(flight) != '\0')
        s = set_text(message, "Troupe-Reason", reason_of(flight));
    return s;
}

/* Destroys a message that is not complete. */
static natsMsg *finish(natsMsg *message, natsStatus s)
{
    if (s == NATS_OK)
        return message;
    natsMsg_Destroy(message);
    return NULL;
}

natsMsg *publication_result(const struct engine *engine, const struct config *config,
                            const struct flight *flight)
{
    const struct troupe_result *result = &flight->result;
    const bool fits = result->size + HEADERS_MAX <= engine_max_payload(engine);
    char subject[128], token[24];
    natsMsg *message;
    natsStatus s;

    (void)snprintf(subject, sizeof(subject), PUBLICATION_RESULT_SUBJECT "%s.%" PRIu64,
                   config->stream, flight_sequence(flight));
    (void)snprintf(token, sizeof(token), "%c%" PRIu64, PUBLICATION_RESULT_TOKEN,
                   flight_sequence(flight));
    message =
        engine_message(engine, subject, token, fits ? result->data : "", fits ? result->size : 0);
    if (!message)
        return NULL;
    s = set_common(message, config, flight, "");
    if (s == NATS_OK)
        s = natsMsgHeader_Set(message, HEADER_ONCE, "0");
    if (s == NATS_OK)
        s = set_number(message, "Troupe-Code", result->code);
    if (s == NATS_OK)
        s = set_number(message, "Troupe-Attempts", result->attempts);
    if (s == NATS_OK && !fits)
        s = natsMsgHeader_Set(message, "Troupe-Missing",
                              "the result is larger than the server's max_payload");
    return finish(message, s);
}

/* What its sender has set: keys, times, and headers of its own. */
static natsStatus copy_headers(natsMsg *to, natsMsg *from)
{
    const char **names;
    int n = 0;
    natsStatus s = natsMsgHeader_Keys(from, &names, &n);

    if (s != NATS_OK)
        return s == NATS_NOT_FOUND ? NATS_OK : s;
    for (int i = 0; i < n && s == NATS_OK; i++) {
        const char *value;

        if (strncmp(names[i], "Nats-", 5) != 0 &&
            natsMsgHeader_Get(from, names[i], &value) == NATS_OK)
            s = natsMsgHeader_Set(to, names[i], value);
    }
    free((void *)names);
    return s;
}

natsMsg *publication_letter(const struct engine *engine, const struct config *config,
                            const struct flight *flight)
{
    natsMsg *job = flight->message;
    const size_t size = (size_t)natsMsg_GetDataLength(job);
    const size_t deaths = flight->deaths ? strlen(flight->deaths) : 0;
    const size_t max = engine_max_payload(engine);
    const bool fits = size + HEADERS_MAX <= max;
    char subject[128], token[24];
    natsMsg *message;
    natsStatus s;

    (void)snprintf(subject, sizeof(subject), PUBLICATION_LETTER_SUBJECT "%s", config->group);
    (void)snprintf(token, sizeof(token), "%c%" PRIu64, PUBLICATION_LETTER_TOKEN,
                   flight_sequence(flight));
    message =
        engine_message(engine, subject, token, fits ? natsMsg_GetData(job) : "", fits ? size : 0);
    if (!message)
        return NULL;
    s = copy_headers(message, job);
    if (s == NATS_OK)
        s = set_common(message, config, flight, ":dead");
    if (s == NATS_OK)
        s = natsMsgHeader_Set(message, "Troupe-Subject", natsMsg_GetSubject(job));
    if (s == NATS_OK && deaths > 0 && (fits ? size : 0) + deaths + HEADERS_MAX <= max)
        s = set_text(message, "Troupe-Deaths", flight->deaths);
    if (s == NATS_OK && !fits)
        s = natsMsgHeader_Set(message, "Troupe-Missing",
                              "the payload and the headers are larger than max_payload");
    return finish(message, s);
}

int publication_confirm(natsMsg *answer, char *problem, size_t size)
{
    json_t *reply, *error;
    int r = 0;

    if (natsMsg_IsNoResponders(answer)) {
        (void)snprintf(problem, size, "no stream takes it");
        return -EIO;
    }
    reply = json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
    error = json_object_get(reply, "error");
    if (!reply || (!error && !json_object_get(reply, "seq"))) {
        (void)snprintf(problem, size, "the answer cannot be understood");
        r = -EIO;
    } else if (error && json_integer_value(json_object_get(error, "err_code")) != ERROR_NOT_ONCE) {
        const char *text = json_string_value(json_object_get(error, "description"));

        (void)snprintf(problem, size, "%s", text ? text : "refused");
        r = -EIO;
    }
    json_decref(reply);
    return r;
}
