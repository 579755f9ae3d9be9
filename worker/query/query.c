/* SPDX-License-Identifier: MIT */

/* Queries over the Varlink socket: jobs, dead letters, groups, events. */

#include "worker/troupe-query.h"

#include "shared/base/cleanup.h"
#include "shared/base/json-text.h"
#include "shared/base/reader.h"
#include "shared/base/stream.h"
#include "shared/protocol/sentence.h"
#include "worker/client/connect.h"
#include "worker/public.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The supervisor's answers are at most half as long. */
#define MESSAGE_MAX ((size_t)8 << 20)

struct text {
    struct text *next;
    char data[];
};

struct troupe_query {
    int socket;
    struct reader reader; /* of messages, each ended by a NUL byte */
    const char *message;  /* the current one; NULL = none */
    const char *record;   /* in it */
    struct text *texts;   /* returned by troupe_query_text() */
    bool over;
    bool asked; /* an answer is to come */
    bool begun; /* a query is running */
    char *method;
    char *member;     /* of the answer: an array of records, or a record; "" = the whole answer */
    char *parameters; /* without braces and cursor */
    bool single;      /* the answer is one record */
    bool stream;
    char *reason; /* of the last error; NULL = none */
};

_public_ int troupe_query_new(struct troupe_query **ret, const char *socket_path)
{
    struct troupe_query *query;
    int fd = connection_socket(socket_path);

    if (fd < 0)
        return fd;
    query = calloc(1, sizeof(*query));
    if (!query) {
        close_fd(fd);
        return -ENOMEM;
    }
    query->socket = fd;
    query->reader = reader_make(fd, '\0', true, MESSAGE_MAX);
    *ret = query;
    return 0;
}

static void drop_texts(struct troupe_query *query)
{
    while (query->texts) {
        struct text *next = query->texts->next;

        free(query->texts);
        query->texts = next;
    }
}

_public_ void troupe_query_free(struct troupe_query *query)
{
    if (!query)
        return;
    drop_texts(query);
    close_fd(query->socket);
    reader_deinit(&query->reader);
    free(query->method);
    free(query->member);
    free(query->parameters);
    free(query->reason);
    free(query);
}

/* ---- asking ---- */

/* Requests the records from `cursor` on; 0 = the first. */
static int ask(struct troupe_query *query, int64_t cursor)
{
    _cleanup_free_ char *text = NULL;
    char page[64] = "";
    int size;

    if (cursor > 0)
        (void)snprintf(page, sizeof(page), "%s\"cursor\":%" PRId64, *query->parameters ? "," : "",
                       cursor);
    size = asprintf(&text, "{\"method\":\"%s\",\"parameters\":{%s%s}%s}", query->method,
                    query->parameters, page, query->stream ? ",\"more\":true" : "");
    if (size < 0) {
        text = NULL;
        return -ENOMEM;
    }
    query->asked = true;
    query->over = stream_send(query->socket, text, (size_t)size + 1) < 0;
    return query->over ? -EPIPE : 0;
}

_public_ int troupe_query_call(struct troupe_query *query, const char *method, const char *member,
                               const char *parameters, unsigned flags)
{
    size_t size = parameters ? strlen(parameters) : 0;

    if (flags & ~TROUPE_QUERY_MORE || method[strcspn(method, "\"\\")] != '\0' ||
        (parameters && (size < 2 || parameters[0] != '{' || parameters[size - 1] != '}')))
        return -EINVAL;
    if (query->begun || query->over)
        return query->over ? -EPIPE : -EBUSY;
    free(query->parameters);
    free(query->method);
    free(query->member);
    query->parameters = parameters ? strndup(parameters + 1, size - 2) : strdup("");
    query->method = strdup(method);
    query->member = strdup(member ? member : "");
    query->stream = flags & TROUPE_QUERY_MORE;
    if (!query->method || !query->member || !query->parameters)
        return -ENOMEM;
    query->begun = true;
    return ask(query, 0);
}

/* ---- answers ---- */

static void drop_message(struct troupe_query *query)
{
    query->message = NULL;
    query->record = NULL;
}

static void end_query(struct troupe_query *query)
{
    query->begun = false;
    query->asked = false;
}

/* ---- errors ---- */

static bool has(const void *parameters, const char *member)
{
    return json_text_member(parameters, member) != NULL;
}

/* Writes a JSON string without its quotes and escapes, see json_text_string(). Returns false if it
 * is no string, or contains a NUL. */
static bool read_text(const char *value, char *ret)
{
    const int size = json_text_string(value, ret);

    return size >= 0 && strlen(ret) == (size_t)size;
}

/* Returns a JSON string without its quotes and escapes, or NULL. The caller frees it. */
static char *text_of(const char *value)
{
    const char *end = value && *value == '"' ? json_text_skip(value) : NULL;
    char *text = end ? malloc((size_t)(end - value)) : NULL;

    if (text && !read_text(value, text)) {
        free(text);
        text = NULL;
    }
    return text;
}

static uint64_t count_elements(const char *array)
{
    uint64_t n = 0;

    for (const char *at = json_text_first(array); at; at = json_text_next(at))
        n++;
    return n;
}

static void write_member(FILE *file, const void *parameters, const char *name, const char *format)
{
    const char *value = json_text_member(parameters, name);
    _cleanup_free_ char *text = text_of(value);
    int64_t number;

    if (value && strcmp(format, "length") == 0)
        fprintf(file, "%" PRIu64, count_elements(value));
    else if (text)
        fputs(text, file);
    else if (value && json_text_number(value, &number) == 0)
        fprintf(file, "%" PRId64 "%s", number, strcmp(format, "bytes") == 0 ? " bytes" : "");
}

static void write_reason(FILE *file, const char *error, const char *parameters)
{
    const struct sentence *sentence = sentence_find(error, has, parameters);
    _cleanup_free_ char *nearest = text_of(json_text_member(parameters, "nearest"));

    if (!sentence) {
        fputs("the supervisor refused: ", file);
        sentence_write_name(file, error);
        return;
    }
    sentence_write(file, sentence, write_member, parameters);
    if (nearest && *nearest)
        fprintf(file, "; did you mean '%s'?", nearest);
    else
        fputs(sentence->hint ? sentence->hint : "", file);
}

/* Keeps the reason of an error reply. Returns its -errno. */
static int refused(struct troupe_query *query, const char *error, const char *parameters)
{
    _cleanup_free_ char *name = text_of(error);
    size_t size;
    FILE *file;

    end_query(query);
    if (!name)
        return -EPROTO;
    file = open_memstream(&query->reason, &size);
    if (file) {
        write_reason(file, name, parameters ? parameters : "{}");
        (void)fclose(file);
    }
    return sentence_error(name);
}

_public_ const char *troupe_query_reason(const struct troupe_query *query)
{
    return query->reason ? query->reason : "";
}

/* ---- records ---- */

/* Goes to the first record of a new message. Returns 1, 0 if there is none, or -errno. */
static int open_message(struct troupe_query *query)
{
    const char *error = json_text_member(query->message, "error");
    const char *parameters = json_text_member(query->message, "parameters");
    const char *continues = json_text_member(query->message, "continues");
    const char *records = parameters;

    query->asked = query->stream && continues && *continues == 't';
    if (error)
        return refused(query, error, parameters);
    if (records && *query->member)
        records = json_text_member(records, query->member);
    if (!records)
        return -EPROTO;
    query->single = *records != '[';
    query->record = query->single ? records : json_text_first(records);
    return query->record ? 1 : 0;
}

/* Requests the next page after the last record. Returns 1, 0 if there is none, or -errno. */
static int turn_page(struct troupe_query *query)
{
    const char *next = json_text_member(query->message, "parameters.next");
    int64_t cursor = 0;
    int r;

    if (next && json_text_number(next, &cursor) < 0)
        return -EPROTO;
    if (cursor <= 0)
        return 0;
    r = ask(query, cursor);
    return r < 0 ? r : 1;
}

/* Goes to the next record of the message. Returns 1, 0 after the last one, or -errno. */
static int advance(struct troupe_query *query)
{
    int r = 0;

    if (query->record && query->single)
        query->record = NULL; /* the only one */
    else if (query->record)
        query->record = json_text_next(query->record);
    if (query->record)
        return 1;
    if (!query->stream)
        r = turn_page(query);
    drop_message(query);
    if (r == 0 && !query->asked)
        end_query(query);
    return r < 0 ? r : 0;
}

/* Waits for the next message. Returns 0, -EAGAIN, -EINTR, -ENOMEM, -EPIPE, or -EPROTO when it is
 * too long. */
static int receive(struct troupe_query *query, usec_t timeout)
{
    size_t size;
    int r = reader_next(&query->reader, clock_deadline(timeout), &query->message, &size);

    if (r == READER_E_LATER)
        return -EAGAIN;
    if (r == 0 || r == -EINTR || r == -ENOMEM)
        return r;
    return r == -EMSGSIZE ? -EPROTO : -EPIPE;
}

static int next(struct troupe_query *query, usec_t timeout)
{
    int r;

    if (query->message) {
        r = advance(query);
        if (r != 0)
            return r;
    }
    while (query->asked) {
        r = receive(query, timeout);
        if (r == 0)
            r = open_message(query);
        if (r != 0)
            return r;
        r = advance(query); /* the message was empty */
        if (r < 0)
            return r;
    }
    end_query(query);
    return 0;
}

_public_ int troupe_query_next(struct troupe_query *query, uint64_t timeout_usec)
{
    int r;

    drop_texts(query);
    free(query->reason);
    query->reason = NULL;
    if (query->over)
        return -EPIPE;
    if (!query->begun)
        return 0;
    r = next(query, timeout_usec);
    if (r == -EPIPE || r == -EPROTO)
        query->over = true;
    if (r < 0 && query->message && !query->over)
        drop_message(query);
    return r;
}

_public_ int troupe_query_fd(const struct troupe_query *query)
{
    return query->socket;
}

/* ---- records ---- */

static const char *find(const struct troupe_query *query, const char *field)
{
    return query->record ? json_text_member(query->record, field) : NULL;
}

_public_ const char *troupe_query_text(struct troupe_query *query, const char *field)
{
    const char *value = find(query, field), *end = value ? json_text_skip(value) : NULL;
    struct text *text;

    if (!end || *value != '"')
        return NULL;
    text = malloc(sizeof(*text) + (size_t)(end - value));
    if (!text)
        return NULL;
    if (!read_text(value, text->data)) {
        free(text);
        return NULL;
    }
    text->next = query->texts;
    query->texts = text;
    return text->data;
}

_public_ int64_t troupe_query_number(const struct troupe_query *query, const char *field,
                                     int64_t otherwise)
{
    const char *value = find(query, field);
    int64_t number;

    return value && json_text_number(value, &number) == 0 ? number : otherwise;
}

_public_ bool troupe_query_flag(const struct troupe_query *query, const char *field)
{
    const char *value = find(query, field);

    return value && *value == 't';
}

_public_ const char *troupe_query_json(const struct troupe_query *query, size_t *ret_size)
{
    const char *end = query->record ? json_text_skip(query->record) : NULL;

    *ret_size = end ? (size_t)(end - query->record) : 0;
    return end ? query->record : NULL;
}
