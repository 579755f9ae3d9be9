/* SPDX-License-Identifier: MIT */

/* Asks the Varlink socket for job states, lists, dead letters and events. */

#include "worker/troupe-query.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "worker/client/connect.h"
#include "worker/public.h"
#include "worker/query/json-reader.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PIECE 65536u
/* The supervisor's answers never exceed 4 MiB. */
#define MESSAGE_MAX ((size_t)8 << 20)

struct text {
    struct text *next;
    char data[];
};

struct troupe_query {
    int socket;
    char *buffer; /* the message at hand, and what has arrived behind it */
    size_t size, capacity;
    size_t message; /* bytes of the message at hand, with its NUL; 0 = none */
    const char *record;
    struct text *texts;
    bool over;
    bool asked;         /* an answer is to come */
    const char *method; /* of the query under way; NULL = none */
    const char *member; /* of the answer: an array of records, or a record */
    char *parameters;   /* without braces; a cursor is added */
    bool stream;
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
    free(query->parameters);
    free(query->buffer);
    free(query);
}

/* ---- asking ---- */

static int send_all(struct troupe_query *query, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = send(query->socket, text, size, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            query->over = true;
            return -EPIPE;
        }
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

/* `cursor` 0 = from the beginning. */
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
    return send_all(query, text, (size_t)size + 1);
}

static int begin(struct troupe_query *query, const char *method, const char *member,
                 char *parameters, bool stream)
{
    if (!parameters)
        return -ENOMEM;
    if (query->method || query->over) {
        free(parameters);
        return query->over ? -EPIPE : -EBUSY;
    }
    free(query->parameters);
    query->parameters = parameters;
    query->method = method;
    query->member = member;
    query->stream = stream;
    return ask(query, 0);
}

/* `"name":"value"` with what JSON wants escaped, and `more` behind it. Allocated; NULL = out of
 * memory. */
static char *one_text(const char *name, const char *value, const char *more)
{
    char *text = NULL;
    size_t size;
    FILE *file;

    if (!value)
        return strdup(more);
    file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    fprintf(file, "\"%s\":\"", name);
    for (const char *at = value; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == '"' || *at == '\\')
            fprintf(file, "\\u%04x", (unsigned char)*at);
        else
            fputc(*at, file);
    fprintf(file, "\"%s%s", *more ? "," : "", more);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

_public_ int troupe_query_job(struct troupe_query *query, const char *id)
{
    return begin(query, "io.troupe.Jobs.Get", "job", one_text("id", id ? id : "", ""), false);
}

_public_ int troupe_query_jobs(struct troupe_query *query, const char *group, unsigned flags)
{
    if (flags & ~TROUPE_QUERY_ENDED)
        return -EINVAL;
    return begin(query, "io.troupe.Jobs.List", "jobs",
                 one_text("group", group, flags ? "\"ended\":true" : ""), false);
}

_public_ int troupe_query_dead_letters(struct troupe_query *query, const char *recipient)
{
    _cleanup_free_ char *filter = one_text("recipient", recipient, "");
    char *parameters = NULL;

    if (filter && asprintf(&parameters, "\"filter\":{%s}", filter) < 0)
        parameters = NULL;
    return begin(query, "io.troupe.Actors.ListDeadLetters", "letters", parameters, false);
}

_public_ int troupe_query_events(struct troupe_query *query, const char *target, unsigned flags)
{
    if (flags & ~TROUPE_QUERY_JOB_EVENTS)
        return -EINVAL;
    return begin(query, "io.troupe.Supervisor.Watch", "events",
                 one_text("target", target, flags ? "\"jobs\":true" : ""), true);
}

/* ---- answers ---- */

static int reserve(struct troupe_query *query)
{
    size_t capacity = query->capacity ? 2 * query->capacity : PIECE;
    char *buffer;

    if (query->size < query->capacity)
        return 0;
    if (capacity > MESSAGE_MAX)
        return -EPROTO;
    buffer = realloc(query->buffer, capacity);
    if (!buffer)
        return -ENOMEM;
    query->buffer = buffer;
    query->capacity = capacity;
    return 0;
}

/* One more piece. 0, -EAGAIN, -EINTR, -EPIPE, -EPROTO, -ENOMEM. */
static int receive_piece(struct troupe_query *query, usec_t timeout)
{
    struct pollfd poller = {.fd = query->socket, .events = POLLIN};
    struct timespec limit = usec_to_timespec(timeout);
    ssize_t n;
    int r;

    r = reserve(query);
    if (r < 0)
        return r;
    r = ppoll(&poller, 1, timeout == USEC_INFINITY ? NULL : &limit, NULL);
    if (r <= 0)
        return r < 0 ? -errno : -EAGAIN;
    n = recv(query->socket, query->buffer + query->size, query->capacity - query->size,
             MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return -EPIPE;
    query->size += (size_t)n;
    return 0;
}

static void drop_message(struct troupe_query *query)
{
    memmove(query->buffer, query->buffer + query->message, query->size - query->message);
    query->size -= query->message;
    query->message = 0;
    query->record = NULL;
}

static int receive_message(struct troupe_query *query, usec_t timeout)
{
    usec_t deadline = usec_add(clock_now(), timeout);
    size_t searched = 0;

    for (;;) {
        const char *end = query->size > searched
                              ? memchr(query->buffer + searched, '\0', query->size - searched)
                              : NULL;
        int r;

        if (end) {
            query->message = (size_t)(end - query->buffer) + 1;
            return 0;
        }
        searched = query->size;
        r = receive_piece(query,
                          deadline == USEC_INFINITY ? deadline : usec_sub(deadline, clock_now()));
        if (r < 0)
            return r;
    }
}

static int error_of(const char *value)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {
        {"NoSuchJob\"", -ESRCH},       {"NotPermitted\"", -EPERM}, {"Stopping\"", -ESHUTDOWN},
        {"TooManyClients\"", -EUSERS}, {"BadOption\"", -EINVAL},   {"InvalidParameter\"", -EINVAL},
        {"TooSlow\"", -EPIPE},         {"Internal\"", -ENOMEM},
    };
    const char *end = json_reader_skip(value);

    for (size_t i = 0; end && i < ELEMENTS(errors); i++) {
        size_t size = strlen(errors[i].name);

        if ((size_t)(end - value) > size && memcmp(end - size, errors[i].name, size) == 0)
            return errors[i].error;
    }
    return end && memmem(value, (size_t)(end - value), ".NoSuch", 7) ? -ENOENT : -EPROTO;
}

static void end_query(struct troupe_query *query)
{
    query->method = NULL;
    query->asked = false;
}

/* The first record of the message at hand. 1, 0 = it has none, or what is wrong. */
static int open_message(struct troupe_query *query)
{
    const char *error = json_reader_member(query->buffer, "error");
    const char *parameters = json_reader_member(query->buffer, "parameters");
    const char *records = parameters ? json_reader_member(parameters, query->member) : NULL;

    query->asked = query->stream;
    if (error) {
        int r = error_of(error);

        end_query(query);
        return r;
    }
    if (!records)
        return -EPROTO;
    query->record = *records == '[' ? json_reader_first(records) : records;
    return query->record ? 1 : 0;
}

/* Behind the last record of a message: the next page, if there is one. 1 = asked for, 0 = none. */
static int turn_page(struct troupe_query *query)
{
    const char *next = json_reader_member(query->buffer, "parameters.next");
    int64_t cursor = 0;
    int r;

    if (next && json_reader_number(next, &cursor) < 0)
        return -EPROTO;
    if (cursor <= 0)
        return 0;
    r = ask(query, cursor);
    return r < 0 ? r : 1;
}

/* Whether the message at hand has another record, or there is another message to wait for. */
static int advance(struct troupe_query *query)
{
    int r = 0;

    if (query->record && !query->stream && strcmp(query->member, "job") == 0)
        query->record = NULL; /* it is the only one */
    else if (query->record)
        query->record = json_reader_next(query->record);
    if (query->record)
        return 1;
    if (!query->stream)
        r = turn_page(query);
    drop_message(query);
    if (r == 0 && !query->stream)
        end_query(query);
    return r < 0 ? r : 0;
}

static int next(struct troupe_query *query, usec_t timeout)
{
    int r;

    if (query->message > 0) {
        r = advance(query);
        if (r != 0)
            return r;
    }
    while (query->asked) {
        r = receive_message(query, timeout);
        if (r == 0)
            r = open_message(query);
        if (r != 0)
            return r;
        r = advance(query); /* an empty one */
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
    if (query->over)
        return -EPIPE;
    if (!query->method)
        return 0;
    r = next(query, timeout_usec);
    if (r == -EPIPE || r == -EPROTO)
        query->over = true;
    if (r < 0 && query->message > 0 && !query->over)
        drop_message(query);
    return r;
}

/* ---- records ---- */

static const char *find(const struct troupe_query *query, const char *field)
{
    return query->record ? json_reader_member(query->record, field) : NULL;
}

_public_ const char *troupe_query_text(struct troupe_query *query, const char *field)
{
    const char *value = find(query, field), *end = value ? json_reader_skip(value) : NULL;
    struct text *text;

    if (!end || *value != '"')
        return NULL;
    text = malloc(sizeof(*text) + (size_t)(end - value));
    if (!text)
        return NULL;
    if (json_reader_string(value, text->data) < 0) {
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

    return value && json_reader_number(value, &number) == 0 ? number : otherwise;
}

_public_ bool troupe_query_flag(const struct troupe_query *query, const char *field)
{
    const char *value = find(query, field);

    return value && *value == 't';
}

_public_ const char *troupe_query_json(const struct troupe_query *query, size_t *ret_size)
{
    const char *end = query->record ? json_reader_skip(query->record) : NULL;

    *ret_size = end ? (size_t)(end - query->record) : 0;
    return end ? query->record : NULL;
}
