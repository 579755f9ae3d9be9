/* SPDX-License-Identifier: MIT */
#include "worker/nats/publication.h"

#include "shared/base/cleanup.h"
#include "worker/nats/message.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limit of a stream for all headers, bytes. */
#define HEADERS_MAX UINT16_MAX
/* Troupe-End of a message that can never be a job. */
#define END_REFUSED "refused"

/* Within its duplicate window, a stream stores only one message with this id. */
#define HEADER_ID "Nats-Msg-Id"
/* The message is stored only if this is the sequence of the subject's last message; 0 = there is
 * none. */
#define HEADER_ONCE      "Nats-Expected-Last-Subject-Sequence"
#define HEADER_ONCE_SIZE sizeof(HEADER_ONCE ": 18446744073709551615\r\n")
/* JSStreamHeaderExceedsMaximumErr, which libnats 3.4 does not name. */
#define ERROR_HEADERS_SIZE 10097

#define HEADER_MISSING "Troupe-Missing"
/* A longer header of a sender is not valid, and is in no dead letter. */
#define COPIED_MAX 255

#define SUBJECT_SIZE 256
#define TOKEN_SIZE   32

/* The letters of tokens, by kind. */
static const char kinds[] = {
    [0] = 'r',
    [PUBLICATION_LETTER] = 'd',
    [PUBLICATION_QUESTION] = 'R',
    [PUBLICATION_LETTER | PUBLICATION_QUESTION] = 'D',
};

static void make_token(char token[static TOKEN_SIZE], uint64_t number, unsigned kind)
{
    (void)snprintf(token, TOKEN_SIZE, ENGINE_PUBLISHED_TOKEN "%c%" PRIu64, kinds[kind], number);
}

uint64_t publication_number(const char *token, enum publication_kind *ret_kind)
{
    const char *letter = token + strlen(ENGINE_PUBLISHED_TOKEN);
    size_t kind = 0;

    while (kind < sizeof(kinds) && kinds[kind] != *letter)
        kind++;
    *ret_kind = (enum publication_kind)kind;
    return kind < sizeof(kinds) ? strtoull(letter + 1, NULL, 10) : 0;
}

static void make_subject(char subject[static SUBJECT_SIZE], const struct config *config,
                         const struct flight *flight, bool of_letter)
{
    if (of_letter)
        (void)snprintf(subject, SUBJECT_SIZE, PUBLICATION_LETTER_SUBJECT "%s.%s.%" PRIu64,
                       config->group, config->stream, flight_sequence(flight));
    else
        (void)snprintf(subject, SUBJECT_SIZE, PUBLICATION_RESULT_SUBJECT "%s.%" PRIu64,
                       config->stream, flight_sequence(flight));
}

static natsStatus set_number(natsMsg *message, const char *name, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    return natsMsgHeader_Set(message, name, text);
}

/* A header is one line. A server overlooks a header if its name occurs earlier, in another header
 * (client.go, getHeader), and libnats writes headers in the order of a hash. */
static natsStatus set_text(natsMsg *message, const char *name, const char *text)
{
    _cleanup_free_ char *line = strdup(text);
    char *found;

    if (!line)
        return NATS_NO_MEMORY;
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    while ((found = strstr(line, HEADER_ID)) || (found = strstr(line, HEADER_ONCE)))
        found[strlen("Nats")] = '_';
    return natsMsgHeader_Set(message, name, line);
}

static natsStatus set_once(natsMsg *message, const struct flight *flight)
{
    return set_number(message, HEADER_ONCE, (int64_t)flight->other);
}

static const char *reason_of(const struct flight *flight)
{
    return flight->problem ? flight->problem : flight->result.reason;
}

static natsStatus set_common(natsMsg *message, const struct config *config,
                             const struct flight *flight, const char *suffix)
{
    char id[128];
    natsStatus s = NATS_OK;

    (void)snprintf(id, sizeof(id), "%s:%" PRIu64 "%s", config->stream, flight_sequence(flight),
                   suffix);
    /* A server may remember the id of a publication that it has lost, and would not store it again.
     */
    if (!flight->lost)
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

static bool fits(const struct engine *engine, natsMsg *message)
{
    unsigned n;
    const size_t headers = message_headers_size(message, &n);

    return headers + HEADER_ONCE_SIZE <= HEADERS_MAX &&
           headers + HEADER_ONCE_SIZE + (size_t)natsMsg_GetDataLength(message) <=
               engine_max_payload(engine);
}

/* Destroys a message that is incomplete, or too large unless it is the `last` attempt. */
static natsMsg *keep_if_sendable(const struct engine *engine, natsMsg *message, natsStatus s,
                                 bool last)
{
    if (s == NATS_OK && (last || fits(engine, message)))
        return message;
    natsMsg_Destroy(message);
    return NULL;
}

static natsMsg *make_result(const struct engine *engine, const struct config *config,
                            const struct flight *flight, bool with_data)
{
    const struct troupe_result *result = &flight->result;
    char subject[SUBJECT_SIZE], token[TOKEN_SIZE];
    natsMsg *message;
    natsStatus s;

    make_subject(subject, config, flight, false);
    make_token(token, flight_sequence(flight), 0);
    message = engine_message(engine, subject, token, with_data ? result->data : "",
                             with_data ? result->size : 0);
    if (!message)
        return NULL;
    s = set_common(message, config, flight, "");
    if (s == NATS_OK)
        s = set_once(message, flight);
    if (s == NATS_OK)
        s = set_number(message, "Troupe-Code", result->code);
    if (s == NATS_OK)
        s = set_number(message, "Troupe-Attempts", result->attempts);
    if (s == NATS_OK && !with_data)
        s = natsMsgHeader_Set(message, HEADER_MISSING, "the result: too large");
    return keep_if_sendable(engine, message, s, !with_data);
}

natsMsg *publication_result(const struct engine *engine, const struct config *config,
                            const struct flight *flight)
{
    natsMsg *message = flight->bare ? NULL : make_result(engine, config, flight, true);

    return message ? message : make_result(engine, config, flight, false);
}

/* With these, the dead letter can be sent again as a job. */
static natsStatus copy_headers(natsMsg *to, natsMsg *from)
{
    static const char *const for_jobs[] = {MESSAGE_HEADER_KEY, MESSAGE_HEADER_PRIORITY,
                                           MESSAGE_HEADER_DELAY, MESSAGE_HEADER_TIMEOUT};
    natsStatus s = NATS_OK;
    const char *value;

    for (size_t i = 0; i < ELEMENTS(for_jobs) && s == NATS_OK; i++)
        if (natsMsgHeader_Get(from, for_jobs[i], &value) == NATS_OK && strlen(value) <= COPIED_MAX)
            s = set_text(to, for_jobs[i], value);
    return s;
}

/* The optional parts of a dead letter. */
enum part {
    PART_PAYLOAD = 1 << 0,
    PART_JOB = 1 << 1,     /* with its attempts */
    PART_REPORTS = 1 << 2, /* of deaths: only with the job */
};

/* Tried in this order. Parts that the supervisor also keeps are omitted first. */
static const struct {
    unsigned parts;
    const char *missing;
} letters[] = {
    {PART_PAYLOAD | PART_JOB | PART_REPORTS, NULL},
    {PART_PAYLOAD | PART_JOB, "the death reports: too large"},
    {PART_PAYLOAD, "the attempts: too large"},
    {PART_JOB | PART_REPORTS, "the payload: too large"},
    {PART_JOB, "the payload and the death reports: too large"},
    {0, "the payload and the attempts: too large"},
};

#define LETTERS (sizeof(letters) / sizeof(letters[0]))

/* Sets the job, with the reports as an additional member. */
static natsStatus set_deaths(natsMsg *message, const struct flight *flight, bool with_reports)
{
    const int length = (int)strlen(flight->job) - 1; /* without the brace at the end */
    _cleanup_free_ char *text = NULL;

    if (!with_reports || !flight->reports)
        return set_text(message, "Troupe-Deaths", flight->job);
    if (asprintf(&text, "%.*s,\"deaths\":[%s]}", length, flight->job, flight->reports) < 0) {
        text = NULL;
        return NATS_NO_MEMORY;
    }
    return set_text(message, "Troupe-Deaths", text);
}

static natsStatus set_letter(natsMsg *message, const struct config *config,
                             const struct flight *flight, size_t letter)
{
    const unsigned parts = letters[letter].parts;
    natsStatus s = copy_headers(message, flight->message);

    if (s == NATS_OK)
        s = set_common(message, config, flight, ":dead");
    if (s == NATS_OK)
        s = set_text(message, "Troupe-Subject", natsMsg_GetSubject(flight->message));
    if (s == NATS_OK && parts & PART_JOB && flight->job)
        s = set_deaths(message, flight, parts & PART_REPORTS);
    if (s != NATS_OK || !letters[letter].missing)
        return s;
    return natsMsgHeader_Set(message, HEADER_MISSING, letters[letter].missing);
}

static natsMsg *make_letter(const struct engine *engine, const struct config *config,
                            const struct flight *flight, const char *subject, const char *token)
{
    natsMsg *message = NULL;

    for (size_t i = flight->bare ? LETTERS - 1 : 0; i < LETTERS && !message; i++) {
        const bool with_data = letters[i].parts & PART_PAYLOAD;
        const int size = with_data ? natsMsg_GetDataLength(flight->message) : 0;

        message = engine_message(engine, subject, token,
                                 with_data ? natsMsg_GetData(flight->message) : "", (size_t)size);
        if (message)
            message = keep_if_sendable(engine, message, set_letter(message, config, flight, i),
                                       i == LETTERS - 1);
    }
    return message;
}

natsMsg *publication_letter(const struct engine *engine, const struct config *config,
                            const struct flight *flight)
{
    char subject[SUBJECT_SIZE], token[TOKEN_SIZE];
    natsMsg *message;

    make_subject(subject, config, flight, true);
    make_token(token, flight_sequence(flight), PUBLICATION_LETTER);
    message = make_letter(engine, config, flight, subject, token);
    if (message && set_once(message, flight) != NATS_OK) {
        natsMsg_Destroy(message);
        return NULL;
    }
    return message;
}

natsMsg *publication_notice(const struct engine *engine, const struct config *config,
                            const struct flight *flight)
{
    char subject[128];

    (void)snprintf(subject, sizeof(subject), PUBLICATION_LETTER_SUBJECT "%s", config->group);
    return make_letter(engine, config, flight, subject, NULL);
}

int publication_ask(struct engine *engine, const struct config *config, const struct flight *flight)
{
    const bool of_letter = flight->state == FLIGHT_DEAD;
    char subject[SUBJECT_SIZE], token[TOKEN_SIZE], text[SUBJECT_SIZE + 32];

    make_subject(subject, config, flight, of_letter);
    make_token(token, flight_sequence(flight),
               PUBLICATION_QUESTION | (of_letter ? PUBLICATION_LETTER : 0));
    (void)snprintf(text, sizeof(text), "{\"last_by_subj\":\"%s\"}", subject);
    return engine_request(engine, "$JS.API.STREAM.MSG.GET." PUBLICATION_STREAM, token, text);
}

/* Senders can make the server store its answer to them in place of a publication. Such an answer
 * has no headers. */
static int judge_message(const json_t *message, uint64_t *ret_other)
{
    if (json_object_get(message, "hdrs"))
        return 0;
    *ret_other = (uint64_t)json_integer_value(json_object_get(message, "seq"));
    return PUBLICATION_E_OTHER;
}

int publication_found(const struct config *config, const struct flight *flight, natsMsg *answer,
                      uint64_t *ret_other)
{
    json_t *reply =
        json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
    const json_t *error = json_object_get(reply, "error");
    const json_int_t code = json_integer_value(json_object_get(error, "err_code"));
    const json_t *message = json_object_get(reply, "message");
    const char *found = json_string_value(json_object_get(message, "subject"));
    char subject[SUBJECT_SIZE];
    int r = -EIO;

    make_subject(subject, config, flight, flight->state == FLIGHT_DEAD);
    if (message)
        r = found && strcmp(found, subject) == 0 ? judge_message(message, ret_other)
                                                 : PUBLICATION_E_FOREIGN;
    if (code == JSNoMessageFoundErr || code == JSStreamNotFoundErr)
        r = PUBLICATION_E_MISSING;
    json_decref(reply);
    return r;
}

static int status_of(const json_t *error, char *problem, size_t size)
{
    const json_int_t code = json_integer_value(json_object_get(error, "err_code"));
    const char *text = json_string_value(json_object_get(error, "description"));

    if (code == JSStreamWrongLastSequenceErr) /* HEADER_ONCE: the subject has a message */
        return PUBLICATION_E_DOUBLE;
    (void)snprintf(problem, size, "%s", text ? text : "refused");
    return code == JSStreamMessageExceedsMaximumErr || code == ERROR_HEADERS_SIZE ? -EMSGSIZE
                                                                                  : -EIO;
}

int publication_confirm(natsMsg *answer, char *problem, size_t size)
{
    json_t *reply =
        json_loadb(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), 0, NULL);
    const json_t *error = json_object_get(reply, "error");
    const char *stream = json_string_value(json_object_get(reply, "stream"));
    int r = 0;

    /* Only answers of the engine's API have a type. */
    if (json_object_get(reply, "type") || (stream && strcmp(stream, PUBLICATION_STREAM) != 0)) {
        r = PUBLICATION_E_FOREIGN;
    } else if (!error && (!stream || !json_object_get(reply, "seq"))) {
        (void)snprintf(problem, size, "the answer cannot be understood");
        r = -EIO;
    } else if (error) {
        r = status_of(error, problem, size);
    } else if (json_is_true(json_object_get(reply, "duplicate"))) {
        r = PUBLICATION_E_DOUBLE;
    }
    json_decref(reply);
    return r;
}
