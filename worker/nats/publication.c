/* SPDX-License-Identifier: MIT */
#include "worker/nats/publication.h"

#include "shared/base/cleanup.h"
#include "worker/nats/message.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Troupe-End of a message that can never be a job. */
#define END_REFUSED "refused"

/* Within its duplicate window, a stream stores only one message with this id. */
#define HEADER_ID "Nats-Msg-Id"
/* The message is stored only if this is the sequence of the subject's last message; 0 = there is
 * none. */
#define HEADER_ONCE "Nats-Expected-Last-Subject-Sequence"
/* JSStreamHeaderExceedsMaximumErr, which libnats 3.4 does not name. */
#define ERROR_HEADERS_SIZE 10097

#define HEADER_MISSING "Troupe-Missing"
/* A longer header of a sender is not valid, and is in no dead letter. */
#define COPIED_MAX 255

#define SUBJECT_SIZE 256
#define TOKEN_SIZE   32

/* The letters of tokens. */
static const char letters[_N_FLIGHT_STATES] = {
    [FLIGHT_LETTER] = 'd',
    [FLIGHT_LETTER_DOUBTED] = 'D',
    [FLIGHT_RESULT] = 'r',
    [FLIGHT_RESULT_DOUBTED] = 'R',
};

static bool is_letter(const struct flight *flight)
{
    return flight->state == FLIGHT_LETTER || flight->state == FLIGHT_LETTER_DOUBTED;
}

static void make_token(char token[static TOKEN_SIZE], const struct flight *flight)
{
    (void)snprintf(token, TOKEN_SIZE, "%c%c%" PRIu64, ENGINE_PUBLISHED, letters[flight->state],
                   flight_sequence(flight));
}

uint64_t publication_number(const char *token, enum flight_state *ret_state)
{
    enum flight_state state = 0;

    while (state < _N_FLIGHT_STATES && (letters[state] == '\0' || letters[state] != token[1]))
        state++;
    *ret_state = state;
    return state < _N_FLIGHT_STATES ? strtoull(token + 2, NULL, 10) : 0;
}

static void make_subject(char subject[static SUBJECT_SIZE], const struct config *config,
                         const struct flight *flight)
{
    if (is_letter(flight))
        (void)snprintf(subject, SUBJECT_SIZE, PUBLICATION_LETTER_SUBJECT "%s.%s.%" PRIu64,
                       config->group, config->stream, flight_sequence(flight));
    else
        (void)snprintf(subject, SUBJECT_SIZE, PUBLICATION_RESULT_SUBJECT "%s.%" PRIu64,
                       config->stream, flight_sequence(flight));
}

/* ---- headers ---- */

/* A message that is being made; after an error, nothing more is set. */
struct draft {
    natsMsg *message;
    natsStatus status;
};

static void set(struct draft *draft, const char *name, const char *value)
{
    if (draft->status == NATS_OK)
        draft->status = natsMsgHeader_Set(draft->message, name, value);
}

static void set_number(struct draft *draft, const char *name, int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    set(draft, name, text);
}

/* Sets a text of any kind. A header is one line. A server overlooks a header if its name occurs
 * earlier, in another header (client.go, getHeader), and libnats writes headers in the order of a
 * hash. */
static void set_text(struct draft *draft, const char *name, const char *text)
{
    _cleanup_free_ char *line = strdup(text);
    char *found;

    if (!line) {
        draft->status = NATS_NO_MEMORY;
        return;
    }
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    while ((found = strstr(line, HEADER_ID)) || (found = strstr(line, HEADER_ONCE)))
        found[strlen("Nats")] = '_';
    set(draft, name, line);
}

/* Sets what makes the stream store it once. A server may remember the id of a publication that it
 * has lost, and would not store it again. */
static void set_once(struct draft *draft, const struct config *config, const struct flight *flight)
{
    char id[128];

    (void)snprintf(id, sizeof(id), "%s:%" PRIu64 "%s", config->stream, flight_sequence(flight),
                   is_letter(flight) ? ":dead" : "");
    if (!flight->lost)
        set(draft, HEADER_ID, id);
    set_number(draft, HEADER_ONCE, (int64_t)flight->other);
}

static void set_common(struct draft *draft, const struct config *config,
                       const struct flight *flight)
{
    const char *reason = flight->problem ? flight->problem : flight->result.reason;
    char id[TROUPE_ID_SIZE];

    flight_id(flight, config->stream, id);
    set(draft, "Troupe-Job", id);
    set(draft, "Troupe-End", flight->problem ? END_REFUSED : troupe_end_name(flight->result.end));
    if (*reason != '\0')
        set_text(draft, "Troupe-Reason", reason);
}

/* ---- the parts that may be omitted ---- */

enum part {
    PART_DATA = 1 << 0,
    PART_JOB = 1 << 1,     /* with its attempts */
    PART_REPORTS = 1 << 2, /* of deaths: only with the job */
};

struct version {
    unsigned parts;
    const char *missing;
};

/* Tried in this order. Parts that the supervisor also keeps are omitted first. */
static const struct version letter_versions[] = {
    {PART_DATA | PART_JOB | PART_REPORTS, NULL},
    {PART_DATA | PART_JOB, "the death reports: too large"},
    {PART_DATA, "the attempts: too large"},
    {PART_JOB | PART_REPORTS, "the payload: too large"},
    {PART_JOB, "the payload and the death reports: too large"},
    {0, "the payload and the attempts: too large"},
};

static const struct version result_versions[] = {
    {PART_DATA, NULL},
    {0, "the result: too large"},
};

bool publication_omit(struct flight *flight)
{
    const size_t n = is_letter(flight) ? ELEMENTS(letter_versions) : ELEMENTS(result_versions);

    if (flight->n_omitted + 1 >= n)
        return false;
    flight->n_omitted++;
    return true;
}

static const struct version *version_of(const struct flight *flight)
{
    return (is_letter(flight) ? letter_versions : result_versions) + flight->n_omitted;
}

/* ---- messages ---- */

/* With these, the dead letter can be sent again as a job. */
static void copy_headers(struct draft *to, natsMsg *from)
{
    static const char *const for_jobs[] = {MESSAGE_HEADER_KEY, MESSAGE_HEADER_PRIORITY,
                                           MESSAGE_HEADER_DELAY, MESSAGE_HEADER_TIMEOUT,
                                           MESSAGE_HEADER_TRACE};
    const char *value;

    for (size_t i = 0; i < ELEMENTS(for_jobs); i++)
        if (natsMsgHeader_Get(from, for_jobs[i], &value) == NATS_OK && strlen(value) <= COPIED_MAX)
            set_text(to, for_jobs[i], value);
}

/* Sets the job, with the reports as an additional member. */
static void set_deaths(struct draft *draft, const struct flight *flight, bool with_reports)
{
    const int length = (int)strlen(flight->job) - 1; /* without the brace at the end */
    _cleanup_free_ char *text = NULL;

    if (!with_reports || !flight->reports) {
        set_text(draft, "Troupe-Deaths", flight->job);
    } else if (asprintf(&text, "%.*s,\"deaths\":[%s]}", length, flight->job, flight->reports) < 0) {
        text = NULL;
        draft->status = NATS_NO_MEMORY;
    } else {
        set_text(draft, "Troupe-Deaths", text);
    }
}

static void set_result(struct draft *draft, const struct flight *flight)
{
    set_number(draft, "Troupe-Code", flight->result.code);
    set_number(draft, "Troupe-Attempts", flight->result.attempts);
}

static void set_letter(struct draft *draft, const struct flight *flight, unsigned parts)
{
    copy_headers(draft, flight->message);
    set_text(draft, "Troupe-Subject", natsMsg_GetSubject(flight->message));
    if (parts & PART_JOB && flight->job)
        set_deaths(draft, flight, parts & PART_REPORTS);
}

/* Without a token (NULL), it is neither stored nor confirmed. */
static natsMsg *make(const struct engine *engine, const struct flight *flight, const char *subject,
                     const char *token)
{
    const struct version *version = version_of(flight);
    const bool with_data = version->parts & PART_DATA;
    struct draft draft = {.status = NATS_OK};

    if (is_letter(flight))
        draft.message = engine_message(
            engine, subject, token, with_data ? natsMsg_GetData(flight->message) : "",
            with_data ? (size_t)natsMsg_GetDataLength(flight->message) : 0);
    else
        draft.message = engine_message(engine, subject, token, with_data ? flight->result.data : "",
                                       with_data ? flight->result.size : 0);
    if (!draft.message)
        return NULL;
    if (token)
        set_once(&draft, engine->config, flight);
    set_common(&draft, engine->config, flight);
    if (is_letter(flight))
        set_letter(&draft, flight, version->parts);
    else
        set_result(&draft, flight);
    if (version->missing)
        set(&draft, HEADER_MISSING, version->missing);
    if (draft.status == NATS_OK)
        return draft.message;
    natsMsg_Destroy(draft.message);
    return NULL;
}

natsMsg *publication_make(const struct engine *engine, const struct flight *flight)
{
    char subject[SUBJECT_SIZE], token[TOKEN_SIZE];

    make_subject(subject, engine->config, flight);
    make_token(token, flight);
    return make(engine, flight, subject, token);
}

natsMsg *publication_notice(const struct engine *engine, const struct flight *flight)
{
    char subject[128];

    (void)snprintf(subject, sizeof(subject), PUBLICATION_LETTER_SUBJECT "%s",
                   engine->config->group);
    return make(engine, flight, subject, NULL);
}

/* ---- questions and answers ---- */

int publication_ask(struct engine *engine, const struct flight *flight)
{
    char subject[SUBJECT_SIZE], token[TOKEN_SIZE], text[SUBJECT_SIZE + 32];

    make_subject(subject, engine->config, flight);
    make_token(token, flight);
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

int publication_found(const struct engine *engine, const struct flight *flight, natsMsg *answer,
                      uint64_t *ret_other)
{
    json_auto_t *reply = engine_json(answer);
    const json_t *message = json_object_get(reply, "message");
    const char *found = json_string_value(json_object_get(message, "subject")), *text;
    const json_int_t error = engine_json_error(reply, &text);
    char subject[SUBJECT_SIZE];

    make_subject(subject, engine->config, flight);
    if (error == JSNoMessageFoundErr || error == JSStreamNotFoundErr)
        return PUBLICATION_E_MISSING;
    if (!message)
        return -EIO;
    return found && strcmp(found, subject) == 0 ? judge_message(message, ret_other)
                                                : PUBLICATION_E_FOREIGN;
}

int publication_confirm(natsMsg *answer, char *problem, size_t size)
{
    json_auto_t *reply = engine_json(answer);
    const char *stream = json_string_value(json_object_get(reply, "stream")), *text;
    const json_int_t error = engine_json_error(reply, &text);

    /* Only answers of the engine's API have a type. */
    if (json_object_get(reply, "type") || (stream && strcmp(stream, PUBLICATION_STREAM) != 0))
        return PUBLICATION_E_FOREIGN;
    /* HEADER_ONCE: the subject has a message. */
    if (error == JSStreamWrongLastSequenceErr || json_is_true(json_object_get(reply, "duplicate")))
        return PUBLICATION_E_DOUBLE;
    if (!json_object_get(reply, "error") && stream && json_object_get(reply, "seq"))
        return 0;
    (void)snprintf(problem, size, "%s", text ? text : "the answer cannot be understood");
    return error == JSStreamMessageExceedsMaximumErr || error == ERROR_HEADERS_SIZE ? -EMSGSIZE
                                                                                    : -EIO;
}
