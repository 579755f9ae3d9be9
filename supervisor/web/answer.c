/* SPDX-License-Identifier: MIT */
#include "supervisor/web/answer.h"

#include "shared/base/cleanup.h"
#include <stdio.h>
#include <string.h>

#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* Adds the headers that isolate our pages from other sites. */
static void harden(struct MHD_Response *response)
{
    static const struct {
        const char *name, *value;
    } headers[] = {
        {"Content-Security-Policy", POLICY},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };

    for (size_t i = 0; i < ELEMENTS(headers); i++)
        MHD_add_response_header(response, headers[i].name, headers[i].value);
}

/* Sends the response and drops the reference; NULL = out of memory. */
static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     struct MHD_Response *response)
{
    enum MHD_Result r = MHD_NO;

    if (response) {
        harden(response);
        r = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
    }
    return r;
}

enum MHD_Result answer_stream(struct MHD_Connection *connection, struct MHD_Response *response)
{
    if (response) {
        MHD_add_response_header(response, "Content-Type", "text/event-stream");
        MHD_add_response_header(response, "Cache-Control", "no-store");
        /* Asks a reverse proxy to forward each event immediately. */
        MHD_add_response_header(response, "X-Accel-Buffering", "no");
    }
    return send_response(connection, MHD_HTTP_OK, response);
}

/* The text of an answer, until the browser has read it or is gone. */
struct held {
    char *text;
    size_t size;
};

/* The total of all answers; the program has one thread. */
static size_t bytes_held;

static void let_go(void *userdata)
{
    struct held *held = userdata;

    bytes_held -= held->size;
    free(held->text);
    free(held);
}

/* Takes ownership of `text`. */
static struct held *hold(char *text, size_t size)
{
    struct held *held = malloc(sizeof(*held));

    if (!held) {
        free(text);
        return NULL;
    }
    *held = (struct held){text, size};
    bytes_held += size;
    return held;
}

/* Takes ownership of `text`, which may be NULL. */
static struct MHD_Response *make(const char *type, char *text, size_t size)
{
    struct held *held = text ? hold(text, size) : NULL;
    struct MHD_Response *response;

    if (!held)
        return NULL;
    response = MHD_create_response_from_buffer_with_free_callback_cls(size, text, let_go, held);
    if (!response) {
        let_go(held);
        return NULL;
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    return response;
}

static struct MHD_Response *make_json(json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

    json_decref(body);
    return make("application/json", text, text ? strlen(text) : 0);
}

/* Refusals are sent nevertheless: they are short. */
static enum MHD_Result refuse_for_room(struct MHD_Connection *connection)
{
    return answer_refusal(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                          "other browsers have not read their answers yet", NULL);
}

enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status, json_t *body)
{
    if (bytes_held < ANSWER_BYTES_MAX)
        return send_response(connection, status, make_json(body));
    json_decref(body);
    return refuse_for_room(connection);
}

enum MHD_Result answer_text(struct MHD_Connection *connection, const char *type, char *text,
                            size_t size)
{
    if (bytes_held < ANSWER_BYTES_MAX)
        return send_response(connection, MHD_HTTP_OK, make(type, text, size));
    free(text);
    return refuse_for_room(connection);
}

static const char *name_of(unsigned status)
{
    switch (status) {
    case MHD_HTTP_UNAUTHORIZED:
        return "NeedsToken";
    case MHD_HTTP_FORBIDDEN:
        return "NotPermitted";
    case MHD_HTTP_NOT_FOUND:
        return "NotFound";
    case MHD_HTTP_SERVICE_UNAVAILABLE:
        return "Unavailable";
    default:
        return "BadRequest";
    }
}

enum MHD_Result answer_refusal(struct MHD_Connection *connection, unsigned status,
                               const char *reason, const char *allow)
{
    struct MHD_Response *response =
        make_json(json_pack("{s:s, s:s}", "error", name_of(status), "reason", reason));

    if (response && allow)
        MHD_add_response_header(response, "Allow", allow);
    if (response && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (response && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "1");
    return send_response(connection, status, response);
}

static const char *explain(int failure)
{
    switch (failure) {
    case -ENOENT:
        return "there is no such socket: is trouped running?";
    case -ECONNREFUSED:
        return "nothing listens there: is trouped running?";
    case -EACCES:
        return "troupe-web may not open it: see the mode of the socket and of its directory";
    case -ETIMEDOUT:
        return "no answer within 5 seconds: it is busy, or hangs";
    case -EAGAIN:
        return "it does not accept connections: it is busy, or hangs";
    case -ECANCELED:
        return "troupe-web is stopping";
    case -EBUSY:
        return "too many calls are already in progress";
    case -ECONNRESET:
    case -EPIPE:
        return "it closed the connection, or is gone";
    case -EPROTO:
        return "the program there is not trouped, or has a different version";
    default:
        return strerror(-failure);
    }
}

enum MHD_Result answer_failure(struct MHD_Connection *connection, const char *socket, int failure)
{
    char reason[512];

    snprintf(reason, sizeof(reason), "%s supervisor at %s: %s",
             failure == -ENOENT || failure == -ECONNREFUSED ? "no" : "the", socket,
             explain(failure));
    return answer_refusal(connection, MHD_HTTP_SERVICE_UNAVAILABLE, reason, NULL);
}

/* The HTTP status for an error of the supervisor, by its full name. */
static unsigned status_of(const char *error)
{
    static const struct {
        const char *name;
        unsigned status;
    } statuses[] = {
        {"NotPermitted", MHD_HTTP_FORBIDDEN},
        {"HistoryOff", MHD_HTTP_NOT_FOUND},
        {"BadOption", MHD_HTTP_BAD_REQUEST},
        {"BadSize", MHD_HTTP_BAD_REQUEST},
        {"InvalidParameter", MHD_HTTP_BAD_REQUEST},
        {"MethodNotFound", MHD_HTTP_NOT_IMPLEMENTED},
        {"MethodNotImplemented", MHD_HTTP_NOT_IMPLEMENTED},
        {"InterfaceNotFound", MHD_HTTP_NOT_IMPLEMENTED},
        {"Stopping", MHD_HTTP_SERVICE_UNAVAILABLE},
        {"Restarting", MHD_HTTP_SERVICE_UNAVAILABLE},
        {"NotConfigured", MHD_HTTP_SERVICE_UNAVAILABLE},
        {"BadGroup", MHD_HTTP_SERVICE_UNAVAILABLE},
        {"TooManyClients", MHD_HTTP_SERVICE_UNAVAILABLE},
        {"Internal", MHD_HTTP_SERVICE_UNAVAILABLE},
    };
    const char *dot = strrchr(error, '.');
    const char *name = dot ? dot + 1 : error;

    for (size_t i = 0; i < ELEMENTS(statuses); i++)
        if (strcmp(statuses[i].name, name) == 0)
            return statuses[i].status;
    return strncmp(name, "NoSuch", 6) == 0 ? MHD_HTTP_NOT_FOUND : MHD_HTTP_CONFLICT;
}

enum MHD_Result answer_error(struct MHD_Connection *connection, const struct varlink_reply *reply)
{
    return answer_json(
        connection, status_of(reply->error),
        json_pack("{s:s, s:O}", "error", reply->error, "parameters", reply->parameters));
}

/* ---- the files of the page, which are part of the program ---- */

/* Paths are relative to the directory in which the compiler is started: the top of the tree. */
#ifndef TROUPE_PAGE_DIRECTORY
#define TROUPE_PAGE_DIRECTORY "supervisor/web/page"
#endif

/* symbol, file, path, type */
#define PAGE_FILES(FILE)                                                                           \
    FILE(index, "index.html", "/", "text/html; charset=utf-8")                                     \
    FILE(style, "style.css", "/style.css", "text/css; charset=utf-8")                              \
    FILE(icon, "icon.svg", "/icon.svg", "image/svg+xml")                                           \
    FILE(page, "page.js", "/page.js", SCRIPT)                                                      \
    FILE(client, "client.js", "/client.js", SCRIPT)                                                \
    FILE(element, "element.js", "/element.js", SCRIPT)                                             \
    FILE(format, "format.js", "/format.js", SCRIPT)                                                \
    FILE(history, "history.js", "/history.js", SCRIPT)                                             \
    FILE(chart, "chart.js", "/chart.js", SCRIPT)                                                   \
    FILE(group, "group.js", "/group.js", SCRIPT)                                                   \
    FILE(worker, "worker.js", "/worker.js", SCRIPT)                                                \
    FILE(death, "death.js", "/death.js", SCRIPT)                                                   \
    FILE(letter, "letter.js", "/letter.js", SCRIPT)                                                \
    FILE(job, "job.js", "/job.js", SCRIPT)                                                         \
    FILE(event, "event.js", "/event.js", SCRIPT)                                                   \
    FILE(limit, "limit.js", "/limit.js", SCRIPT)                                                   \
    FILE(schedule, "schedule.js", "/schedule.js", SCRIPT)                                          \
    FILE(ended, "ended.js", "/ended.js", SCRIPT)                                                   \
    FILE(stack, "stack.js", "/stack.js", SCRIPT)                                                   \
    FILE(tree, "tree.js", "/tree.js", SCRIPT)                                                      \
    FILE(timeline, "timeline.js", "/timeline.js", SCRIPT)
#define SCRIPT "text/javascript; charset=utf-8"

#define FILE_TEXT(symbol, name, path, type)                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global page_" #symbol ", page_" #symbol "_end\n"                                     \
            "page_" #symbol ":\n"                                                                  \
            ".incbin \"" TROUPE_PAGE_DIRECTORY "/" name "\"\n"                                     \
            "page_" #symbol "_end:\n"                                                              \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const char page_##symbol[], page_##symbol##_end[];
PAGE_FILES(FILE_TEXT)

struct page_file {
    const char *path, *type, *begin, *end;
};

#define FILE_ROW(symbol, name, path, type) {path, type, page_##symbol, page_##symbol##_end},
static const struct page_file files[] = {PAGE_FILES(FILE_ROW)};

const struct page_file *page_find(const char *path)
{
    for (size_t i = 0; i < ELEMENTS(files); i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i];
    return NULL;
}

enum MHD_Result page_answer(struct MHD_Connection *connection, const struct page_file *file)
{
    const size_t size = (size_t)(file->end - file->begin);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        size, (void *)(uintptr_t)file->begin, MHD_RESPMEM_PERSISTENT);

    if (response) {
        MHD_add_response_header(response, "Content-Type", file->type);
        MHD_add_response_header(response, "Cache-Control", "no-cache");
    }
    return send_response(connection, MHD_HTTP_OK, response);
}
