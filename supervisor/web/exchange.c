/* SPDX-License-Identifier: MIT */
#include "supervisor/web/exchange.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/metrics/metrics.h"
#include "supervisor/web/answer.h"
#include "supervisor/web/route.h"
#include "supervisor/web/visitor.h"
#include <string.h>

#define URL_MAX ((size_t)512)

struct exchange {
    struct site *site;
    struct MHD_Connection *connection;
    const struct page_file *file; /* either this */
    const struct route *route;    /* or this */
    bool head;
    struct buffer body; /* failed: too large */
    struct parameters parameters;
    struct question question;
    json_t *whole;             /* of metrics: the replies together */
    struct item_stream *items; /* NULL = it is none */
    bool suspended, answered;
};

static enum MHD_Result refuse(const struct exchange *exchange, unsigned status, const char *reason)
{
    return answer_refusal(exchange->connection, status, reason, NULL);
}

static enum MHD_Result no_memory(const struct exchange *exchange)
{
    return refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "troupe-web is out of memory");
}

/* ---- the headers */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_header(void *userdata, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct guard_request *request = userdata;

    request->n_hosts += strcasecmp(name, "Host") == 0;
    request->n_lengths +=
        strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Transfer-Encoding") == 0;
    return MHD_YES;
}

static unsigned check_headers(const struct exchange *exchange, const char **ret_reason)
{
    struct MHD_Connection *connection = exchange->connection;
    struct guard_request request = {
        .change = exchange->route && exchange->route->change,
        .page = exchange->file != NULL,
        .host = header(connection, "Host"),
        .origin = header(connection, "Origin"),
        .fetch_site = header(connection, "Sec-Fetch-Site"),
        .content_type = header(connection, "Content-Type"),
        .content_length = header(connection, "Content-Length"),
        .authorization = header(connection, "Authorization"),
    };

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &request);
    return guard_check(&exchange->site->guard, &request, ret_reason);
}

static const char *allowed_methods(const struct exchange *exchange)
{
    return exchange->route && exchange->route->change ? "POST" : "GET, HEAD";
}

static bool is_allowed_method(const struct exchange *exchange, const char *method)
{
    if (exchange->route && exchange->route->change)
        return strcmp(method, "POST") == 0;
    return strcmp(method, "GET") == 0 || exchange->head;
}

/* Answers immediately unless the request will be served. */
static enum MHD_Result admit(struct exchange *exchange, const char *url, const char *method)
{
    const char *reason = NULL;
    unsigned status;

    if (strlen(url) > URL_MAX)
        return refuse(exchange, MHD_HTTP_URI_TOO_LONG, "the path is longer than 512 bytes");
    exchange->file = page_find(url);
    exchange->route = exchange->file ? NULL : route_find(url);
    exchange->head = strcmp(method, "HEAD") == 0;
    if ((exchange->file || exchange->route) && !is_allowed_method(exchange, method))
        return answer_refusal(exchange->connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "this path does not have that method", allowed_methods(exchange));
    status = check_headers(exchange, &reason);
    if (status != 0)
        return refuse(exchange, status, reason);
    if (!exchange->file && !exchange->route)
        return refuse(exchange, MHD_HTTP_NOT_FOUND, "there is nothing at this path");
    visitor_begin(exchange->connection, VISITOR_ANSWER);
    return MHD_YES;
}

/* ---- the parameters */

struct reading {
    struct exchange *exchange;
    struct parameter_reason *reason;
    int r;
};

static enum MHD_Result add_argument(void *userdata, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct reading *reading = userdata;

    reading->r =
        parameters_add_text(&reading->exchange->parameters, reading->exchange->route->parameters,
                            name, value ? value : "", reading->reason);
    return reading->r == 0 ? MHD_YES : MHD_NO;
}

/* Returns 0, PARAMETER_E_BAD or -ENOMEM. */
static int read_parameters(struct exchange *exchange, struct parameter_reason *reason)
{
    struct reading reading = {.exchange = exchange, .reason = reason};
    int r = parameters_init(&exchange->parameters);

    if (r < 0)
        return r;
    /* Changes take no parameters from the address, which ends up in logs. */
    if (exchange->route->change)
        r = parameters_add_body(&exchange->parameters, exchange->route->parameters,
                                exchange->body.bytes ? exchange->body.bytes : "",
                                exchange->body.size, reason);
    else
        MHD_get_connection_values(exchange->connection, MHD_GET_ARGUMENT_KIND, add_argument,
                                  &reading);
    if (r == 0)
        r = reading.r;
    return r == 0 ? parameters_complete(&exchange->parameters, exchange->route->parameters) : r;
}

/* ---- the supervisor */

static void on_outcome(struct question *question)
{
    struct exchange *exchange = list_entry(question, struct exchange, question);

    exchange->answered = true;
    if (exchange->suspended) {
        exchange->suspended = false;
        MHD_resume_connection(exchange->connection);
    }
}

static int join_metrics(struct question *question, const json_t *part)
{
    return metrics_join(list_entry(question, struct exchange, question)->whole, part);
}

static void ask(struct exchange *exchange)
{
    if (exchange->route->kind == ROUTE_METRICS) {
        exchange->whole = json_object();
        exchange->question.part = join_metrics;
    }
    questions_ask(&exchange->site->questions, &exchange->question, exchange->route->method,
                  json_incref(exchange->parameters.call), clock_now());
    if (!exchange->answered) {
        exchange->suspended = true;
        MHD_suspend_connection(exchange->connection);
    }
}

static enum MHD_Result answer_metrics(const struct exchange *exchange)
{
    size_t size;
    char *text = metrics_to_text(exchange->whole, &size);

    return answer_text(exchange->connection, METRICS_CONTENT_TYPE, text, size);
}

/* Returns the part of a reply that the browser gets; NULL = out of memory. */
static json_t *view_of(const struct exchange *exchange)
{
    json_t *reply = exchange->question.reply.parameters, *local = exchange->parameters.local;

    if (!exchange->route->view)
        return json_incref(reply);
    json_object_set_new(local, "at", json_integer((json_int_t)exchange->question.at));
    return exchange->route->view(reply, local);
}

static enum MHD_Result answer_outcome(const struct exchange *exchange)
{
    const struct question *question = &exchange->question;
    const struct route *route = exchange->route;

    if (question->failure < 0)
        return answer_failure(exchange->connection, exchange->site->questions.socket,
                              question->failure);
    if (question->reply.error)
        return answer_error(exchange->connection, &question->reply);
    if (route->kind == ROUTE_METRICS)
        return answer_metrics(exchange);
    return answer_json(exchange->connection, MHD_HTTP_OK, view_of(exchange));
}

/* Releases the reply, since the browser may be slow to read the answer. */
static enum MHD_Result end_exchange(struct exchange *exchange)
{
    enum MHD_Result r = answer_outcome(exchange);

    varlink_reply_deinit(&exchange->question.reply);
    json_decref(exchange->whole);
    exchange->whole = NULL;
    return r;
}

/* ---- the request */

static enum MHD_Result answer_session(const struct exchange *exchange)
{
    const struct guard *guard = &exchange->site->guard;
    bool has_token = token_matches(&guard->token, header(exchange->connection, "Authorization"));

    return answer_json(exchange->connection, MHD_HTTP_OK,
                       json_pack("{s:s, s:b, s:b}", "version", TROUPE_VERSION, "changes",
                                 guard->allow_changes, "token", has_token));
}

/* Returns like read_parameters(). */
static int take_last_id(struct exchange *exchange, struct parameter_reason *reason)
{
    const char *last = header(exchange->connection, "Last-Event-ID");

    if (!last || *last == '\0' || json_object_get(exchange->parameters.call, "after"))
        return 0;
    return parameters_add_text(&exchange->parameters, exchange->route->parameters, "after", last,
                               reason);
}

static enum MHD_Result serve_items(struct exchange *exchange)
{
    struct parameter_reason reason;
    bool is_ready;
    int r = take_last_id(exchange, &reason);

    if (r != 0)
        return r < 0 ? no_memory(exchange) : refuse(exchange, MHD_HTTP_BAD_REQUEST, reason.text);
    exchange->items = item_stream_new(&exchange->site->items, exchange->connection,
                                      json_incref(exchange->parameters.call), &is_ready);
    if (!exchange->items)
        return refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                      "too many streams of jobs are being served");
    return is_ready ? item_stream_answer(exchange->items, exchange->head) : MHD_YES;
}

static enum MHD_Result serve_route(struct exchange *exchange)
{
    struct parameter_reason reason;
    int r;

    if (exchange->body.failed)
        return refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a change must have at most 64 KiB");
    r = read_parameters(exchange, &reason);
    if (r != 0)
        return r < 0 ? no_memory(exchange) : refuse(exchange, MHD_HTTP_BAD_REQUEST, reason.text);
    if (exchange->route->kind == ROUTE_SESSION)
        return answer_session(exchange);
    if (exchange->route->kind == ROUTE_EVENTS)
        return feed_answer(&exchange->site->feed, exchange->connection, exchange->head);
    if (exchange->route->kind == ROUTE_JOB_EVENTS)
        return feed_answer(&exchange->site->job_feed, exchange->connection, exchange->head);
    if (exchange->route->kind == ROUTE_ITEMS)
        return serve_items(exchange);
    ask(exchange);
    return exchange->answered ? end_exchange(exchange) : MHD_YES;
}

/* Keeps a part of the body, up to the bound. */
static void take_body(struct exchange *exchange, const char *part, size_t size)
{
    struct buffer *body = &exchange->body;

    if (!body->failed && body->size + size <= GUARD_BODY_MAX)
        buffer_add(body, part, size);
    else
        body->failed = true;
}

static struct exchange *exchange_new(struct site *site, struct MHD_Connection *connection)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));

    if (!exchange)
        return NULL;
    exchange->site = site;
    exchange->connection = connection;
    question_init(&exchange->question, on_outcome);
    return exchange;
}

/* The library calls it with the headers, with each part of the body, at the end, and again after
 * the connection was suspended. */
enum MHD_Result exchange_handle(void *userdata, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **context)
{
    struct exchange *exchange = *context;

    if (!exchange) {
        *context = exchange = exchange_new(userdata, connection);
        return exchange ? admit(exchange, url, method) : MHD_NO;
    }
    if (*upload_size > 0) {
        take_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (exchange->answered)
        return end_exchange(exchange);
    if (exchange->items)
        return item_stream_answer(exchange->items, exchange->head);
    return exchange->file ? page_answer(connection, exchange->file) : serve_route(exchange);
}

void exchange_completed(void *userdata, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode code)
{
    struct exchange *exchange = *context;

    *context = NULL;
    visitor_begin(connection, VISITOR_IDLE);
    if (!exchange)
        return;
    parameters_deinit(&exchange->parameters);
    question_deinit(&exchange->question);
    exchange->items = item_stream_free(exchange->items);
    json_decref(exchange->whole);
    buffer_deinit(&exchange->body);
    free(exchange);
}
