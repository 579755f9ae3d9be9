/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/request.h"

#include "shared/base/log.h"
#include "supervisor/event/limited-log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE "org.varlink.service"

static void on_turn(struct task *task)
{
    request_answer_now(list_entry(task, struct request, turn));
}

void request_init(struct request *request, struct control_context *context, struct control *control,
                  struct connection *connection, struct limited_log *log)
{
    *request = (struct request){.context = context,
                                .control = control,
                                .connection = connection,
                                .log = log,
                                .call = VARLINK_CALL_NULL};
    reply_init(&request->reply, connection->account, REQUEST_REPLY_MAX);
    task_init(&request->turn, connection->work, on_turn);
}

static void let_go(struct request *request)
{
    void (*drop)(struct request *) = request->drop;

    task_cancel(&request->turn);
    request->answer = NULL;
    request->drop = NULL;
    if (drop)
        drop(request);
    request->state = NULL;
    request->sent = NULL;
    varlink_call_deinit(&request->call);
    request->interface = NULL;
    request->method = NULL;
    request->active = false;
}

void request_deinit(struct request *request)
{
    let_go(request);
    reply_deinit(&request->reply);
}

bool request_answer_in_turn(struct request *request,
                            void (*answer)(struct request *request, void *what), void *what)
{
    request->answer = answer;
    request->what = what;
    task_run(&request->turn);
    return !request->answer;
}

void request_answer_now(struct request *request)
{
    void (*answer)(struct request *, void *) = request->answer;

    request->answer = NULL;
    if (answer)
        answer(request, request->what);
}

bool request_wants_more(const struct request *request)
{
    return request->call.more && !request->call.oneway;
}

struct reply *request_begin(struct request *request)
{
    reply_reset(&request->reply);
    reply_object(&request->reply, NULL);
    reply_object(&request->reply, "parameters");
    return &request->reply;
}

static const char *own_interface(const struct request *request)
{
    return request->interface && strcmp(request->interface->name, SERVICE) != 0
               ? request->interface->name
               : "io.troupe.Supervisor";
}

struct reply *request_begin_error(struct request *request, const char *name)
{
    struct reply *reply = &request->reply;
    const char *interface = strchr(name, '.') ? "" : own_interface(request);

    reply_reset(reply);
    reply_raw(reply, "{\"error\":\"", 10);
    reply_raw(reply, interface, strlen(interface));
    if (*interface != '\0')
        reply_raw(reply, ".", 1);
    reply_raw(reply, name, strlen(name));
    reply_raw(reply, "\"", 1);
    reply->separate = true;
    reply_object(reply, "parameters");
    return reply;
}

static const char *describe(int error)
{
    switch (error) {
    case -EDQUOT:
        return "unread replies take too much memory";
    case -ETOOMANYREFS:
        return "more descriptors of the supervisor's user are on their way between processes than "
               "its RLIMIT_NOFILE allows; try again, or raise LimitNOFILE=";
    default:
        return strerror(-error);
    }
}

/* Replaces a reply that could not be built or sent. */
static void replace_answer(struct request *request, int error)
{
    if (error == -EMSGSIZE)
        reply_int(request_begin_error(request, "TooLarge"), "maximum", (int64_t)REQUEST_REPLY_MAX);
    else
        reply_string(request_begin_error(request, "Internal"), "message", describe(error));
    reply_end_object(&request->reply);
    reply_end_object(&request->reply);
    reply_raw(&request->reply, "", 1);
}

static int send_answer(struct request *request, const int *fds, unsigned n_fds)
{
    struct connection *connection = request->connection;
    struct reply *reply = &request->reply;
    int r, error;

    reply_end_object(reply);
    reply_raw(reply, "", 1); /* the NUL at the end */
    if (request->call.oneway)
        return 0;
    if (reply->error != 0)
        replace_answer(request, reply->error);
    r = error = connection_send(connection, reply->data, reply->size, fds, n_fds);
    if (r < 0) {
        replace_answer(request, r);
        r = connection_send(connection, reply->data, reply->size, NULL, 0);
    }
    if (r < 0)
        connection_close(connection);
    /* Large replies are rare: the buffer is not kept. */
    if (reply->allocated > 65536)
        reply_deinit(reply);
    return error < 0 ? error : 0;
}

int request_end_with_fds(struct request *request, const int *fds, unsigned n_fds)
{
    int r;

    reply_end_object(&request->reply);
    r = send_answer(request, fds, n_fds);
    let_go(request);
    connection_next(request->connection);
    return r;
}

void request_end(struct request *request)
{
    (void)request_end_with_fds(request, NULL, 0);
}

void request_end_more(struct request *request)
{
    reply_end_object(&request->reply);
    reply_bool(&request->reply, "continues", true);
    (void)send_answer(request, NULL, 0);
}

void request_done(struct request *request)
{
    request_begin(request);
    request_end(request);
}

void request_fail(struct request *request, const char *name)
{
    request_begin_error(request, name);
    request_end(request);
}

void request_fail_string(struct request *request, const char *name, const char *key,
                         const char *value)
{
    request_fail_strings(request, name, key, value, NULL, NULL);
}

void request_fail_strings(struct request *request, const char *name, const char *key,
                          const char *value, const char *second_key, const char *second)
{
    struct reply *reply = request_begin_error(request, name);

    reply_string(reply, key, value);
    if (second)
        reply_string(reply, second_key, second);
    request_end(request);
}

void request_fail_int(struct request *request, const char *name, const char *key, int64_t value)
{
    reply_int(request_begin_error(request, name), key, value);
    request_end(request);
}

void request_invalid(struct request *request, const char *parameter)
{
    request_fail_string(request, SERVICE ".InvalidParameter", "parameter", parameter);
}

bool request_refuse(struct request *request, const char *option, const char *allowed)
{
    request_fail_strings(request, "BadOption", "option", option, "allowed", allowed);
    return false;
}

void request_internal(struct request *request, int error)
{
    limited_log_write(request->log, NULL, LOG_LEVEL_WARNING, "client %d: %s failed: %s",
                      (int)request->connection->peer.pid,
                      request->method ? request->method->name : "a call", strerror(-error));
    request_fail_string(request, "Internal", "message", strerror(-error));
}

/* Answers what is wrong with the members of a call. Returns whether nothing is. */
static bool answer_problem(struct request *request, int r, const struct varlink_problem *problem)
{
    if (r == VARLINK_E_INVALID)
        request_invalid(request, problem->member);
    else if (r == VARLINK_E_REFUSED)
        request_refuse(request, problem->member, problem->allowed);
    return r == 0;
}

bool request_take_parameters(struct request *request)
{
    struct interface *description = &request->interface->description;
    const char *name = request->method->name;
    struct varlink_problem problem;

    return answer_problem(request,
                          varlink_read(&request->parameters, &request->call,
                                       interface_find(description, 'm', name, strlen(name)),
                                       &problem),
                          &problem);
}

bool request_range(struct request *request, const char *name, int64_t min, int64_t max)
{
    const int64_t number = request_int(request, name, min);
    char allowed[64];

    if (number >= min && number <= max)
        return true;
    if (max == INT64_MAX)
        (void)snprintf(allowed, sizeof(allowed), "%" PRId64 " or more", min);
    else
        (void)snprintf(allowed, sizeof(allowed), "%" PRId64 " to %" PRId64, min, max);
    return request_refuse(request, name, allowed);
}

void *request_allocate(struct request *request, size_t size)
{
    void *state = calloc(1, size);

    if (!state)
        request_internal(request, -ENOMEM);
    return state;
}

bool request_start(struct request *request, const char *text, size_t size)
{
    struct varlink_problem problem = {.member = "upgrade"};
    int r;

    request->active = true;
    r = varlink_parse(&request->call, text, size, &problem);
    if (r == 0 && request->call.upgrade)
        r = VARLINK_E_INVALID;
    if (r < 0) {
        request_internal(request, r);
    } else if (r == VARLINK_E_MALFORMED) {
        /* The client may be out of step: what follows cannot be trusted. */
        request_invalid(request, "message");
        connection_finish(request->connection);
    }
    return r >= 0 && r != VARLINK_E_MALFORMED && answer_problem(request, r, &problem);
}
