/* SPDX-License-Identifier: MIT */
#include "worker/nats/publication.h"

#include "shared/base/cleanup.h"
#include "worker/nats/message.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* The limit of a sender's headers in a dead letter. With many more, libnats takes seconds for a
 * message, since it compares each to all with the same name or hash. */
#define HEADERS_COPIED_MAX 1000

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

/* A server overlooks a header if its name occurs earlier, in another header (client.go, getHeader),
 * and libnats writes headers in the order of a hash. Returns the first such name in a text; NULL =
 * none. */
static char *find_hiding(const char *text)
{
    char *found = strstr(text, HEADER_ID);

    return found ? found : strstr(text, HEADER_ONCE);
}

/* A header is one line. */
static natsStatus set_text(natsMsg *message, const char *name, const char *text)
{
    _cleanup_free_ char *line = strdup(text);
    char *found;

    if (!line)
        return NATS_NO_MEMORY;
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    while ((found = find_hiding(line)))
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

/* Returns whether the sender may set the header: its own ones, and those for jobs. Others belong to
 * dead letters, which may be sent again as jobs, or control servers and clients. */
static bool is_senders(const char *name)
{
    static const char *const for_jobs[] = {MESSAGE_HEADER_KEY, MESSAGE_HEADER_PRIORITY,
                                           MESSAGE_HEADER_DELAY, MESSAGE_HEADER_TIMEOUT};

    for (size_t i = 0; i < ELEMENTS(for_jobs); i++)
        if (strcasecmp(name, for_jobs[i]) == 0)
            return true;
    return strncasecmp(name, "Troupe-", strlen("Troupe-")) != 0 &&
           strncasecmp(name, "Nats-", strlen("Nats-")) != 0 && strcasecmp(name, "Status") != 0;
}

/* libnats reads a line without a colon and the next line as one name, and would write both: the
 * second one could be any header. */
static bool is_name(const char *name)
{
    for (; *name != '\0'; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            return false;
    return true;
}

/* Takes the number of headers off `left`. */
static natsStatus copy_header(natsMsg *to, natsMsg *from, const char *name, int *left)
{
    const char **values;
    int n = 0;
    natsStatus s = natsMsgHeader_Values(from, name, &values, &n);

    if (s != NATS_OK)
        return s;
    *left -= n;
    if (find_hiding(name))
        s = NATS_PROTOCOL_ERROR;
    else if (*left < 0)
        s = NATS_INSUFFICIENT_BUFFER;
    for (int i = 0; i < n && s == NATS_OK; i++)
        s = find_hiding(values[i]) ? NATS_PROTOCOL_ERROR : natsMsgHeader_Add(to, name, values[i]);
    free((void *)values);
    return s;
}

static natsStatus copy_headers(natsMsg *to, natsMsg *from)
{
    const char **names;
    int n = 0, left = HEADERS_COPIED_MAX;
    natsStatus s = natsMsgHeader_Keys(from, &names, &n);

    if (s != NATS_OK)
        return s == NATS_NOT_FOUND ? NATS_OK : s;
    if (n > left)
        s = NATS_INSUFFICIENT_BUFFER;
    for (int i = 0; i < n && s == NATS_OK; i++) {
        if (!is_name(names[i]))
            s = NATS_PROTOCOL_ERROR;
        else if (is_senders(names[i]))
            s = copy_header(to, from, names[i], &left);
    }
    free((void *)names);
    return s;
}

/* The optional parts of a dead letter. */
enum part {
    PART_PAYLOAD = 1 << 0,
    PART_HEADERS = 1 << 1,
    PART_JOB = 1 << 2,     /* with its attempts */
    PART_REPORTS = 1 << 3, /* of deaths: only with the job */
};

/* Tried in this order. Parts that the supervisor also keeps are omitted first. */
static const struct {
    unsigned parts;
    const char *missing;
} letters[] = {
    {PART_PAYLOAD | PART_HEADERS | PART_JOB | PART_REPORTS, NULL},
    {PART_PAYLOAD | PART_HEADERS | PART_JOB, "the death reports"},
    {PART_PAYLOAD | PART_HEADERS, "the attempts"},
    {PART_HEADERS | PART_JOB | PART_REPORTS, "the payload"},
    {PART_HEADERS | PART_JOB, "the payload and the death reports"},
    {PART_HEADERS, "the payload and the attempts"},
    {PART_PAYLOAD | PART_JOB | PART_REPORTS, "the sender's headers"},
    {PART_PAYLOAD | PART_JOB, "the sender's headers and the death reports"},
    {PART_PAYLOAD, "the sender's headers and the attempts"},
    {PART_JOB | PART_REPORTS, "the payload and the sender's headers"},
    {PART_JOB, "the payload, the sender's headers and the death reports"},
    {0, "the payload, the sender's headers and the attempts"},
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
    natsStatus s = parts & PART_HEADERS ? copy_headers(message, flight->message) : NATS_OK;
    char text[96];

    if (s == NATS_OK)
        s = set_common(message, config, flight, ":dead");
    if (s == NATS_OK)
        s = set_text(message, "Troupe-Subject", natsMsg_GetSubject(flight->message));
    if (s == NATS_OK && parts & PART_JOB && flight->job)
        s = set_deaths(message, flight, parts & PART_REPORTS);
    if (s != NATS_OK || !letters[letter].missing)
        return s;
    (void)snprintf(text, sizeof(text), "%s: too large, or malformed", letters[letter].missing);
    return natsMsgHeader_Set(message, HEADER_MISSING, text);
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
