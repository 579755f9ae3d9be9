/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/call.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/format.h"
#include <errno.h>
#include <string.h>

static int open_client(struct invocation *invocation, bool patient)
{
    usec_t timeout = invocation->options.timeout;
    int r;

    if (timeout == 0)
        timeout = patient ? USEC_INFINITY : CALL_TIMEOUT;
    if (invocation->client.fd >= 0) {
        invocation->client.timeout = timeout;
        return EXIT_OK;
    }
    r = varlink_client_init(&invocation->client, invocation_socket(invocation), timeout);
    if (r < 0 && invocation->lenient)
        return EXIT_UNREACHABLE;
    return r < 0 ? explain_connect(invocation_socket(invocation), r) : EXIT_OK;
}

/*
 * Closes the connection after a call failed with -errno: later replies would be mistaken for those
 * of the next call.
 */
static int broken(struct invocation *invocation, int error)
{
    varlink_client_deinit(&invocation->client);
    if (invocation->lenient && (error == -ECONNRESET || error == -EPIPE))
        return EXIT_UNREACHABLE;
    return explain_broken(error);
}

static int send_call(struct invocation *invocation, const char *method, json_t *parameters,
                     bool more, bool patient)
{
    int r;

    r = open_client(invocation, patient);
    if (r != EXIT_OK) {
        json_decref(parameters);
        return r;
    }
    r = varlink_client_send(&invocation->client, method, parameters, more);
    return r < 0 ? broken(invocation, r) : EXIT_OK;
}

/* With --json, the problems of the configuration are printed as JSON. */
static int print_problems(const struct invocation *invocation, const json_t *parameters)
{
    int r = call_print_json(invocation, parameters);

    return r == EXIT_OK ? EXIT_INVALID : r;
}

/* 0 or -errno. */
static int receive(struct invocation *invocation, struct varlink_reply *ret)
{
    int r;

    do
        r = varlink_client_receive(&invocation->client, ret);
    while (r == -EINTR);
    return r;
}

/* Takes ownership of the reply. */
static int take_answer(const struct invocation *invocation, struct varlink_reply *reply,
                       json_t **ret)
{
    int r = EXIT_OK;

    if (reply->error && invocation->options.json &&
        strcmp(reply->error, CALL_SUPERVISOR "BadConfiguration") == 0)
        r = print_problems(invocation, reply->parameters);
    else if (reply->error)
        r = explain_error(reply->error, reply->parameters);
    else
        *ret = json_incref(reply->parameters);
    varlink_reply_deinit(reply);
    return r;
}

int call(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
         json_t **ret)
{
    struct varlink_reply reply;
    int r;

    r = send_call(invocation, method, parameters, false, patient);
    if (r != EXIT_OK)
        return r;
    r = receive(invocation, &reply);
    return r < 0 ? broken(invocation, r) : take_answer(invocation, &reply, ret);
}

int call_wait(struct invocation *invocation, const char *method, json_t *parameters, json_t **ret)
{
    struct varlink_reply reply;
    int r;

    r = send_call(invocation, method, parameters, false, true);
    if (r != EXIT_OK)
        return r;
    r = receive(invocation, &reply);
    if (r == -ETIMEDOUT) {
        varlink_client_deinit(&invocation->client);
        return EXIT_TIMEOUT;
    }
    return r < 0 ? broken(invocation, r) : take_answer(invocation, &reply, ret);
}

int call_any(struct invocation *invocation, const char *method, json_t *parameters,
             struct varlink_reply *ret)
{
    int r;

    r = send_call(invocation, method, parameters, false, false);
    if (r != EXIT_OK)
        return r;
    r = receive(invocation, ret);
    return r < 0 ? broken(invocation, r) : EXIT_OK;
}

/*
 * Whether the supervisor closes the connection after this error, so that a new connection may
 * succeed.
 */
static bool is_farewell(const char *error)
{
    return strcmp(error, CALL_SUPERVISOR "Stopping") == 0 ||
           strcmp(error, CALL_SUPERVISOR "TooSlow") == 0;
}

static int receive_one(struct invocation *invocation, call_reply_fn each, void *userdata,
                       bool *ret_last)
{
    struct varlink_reply reply;
    int r;

    r = receive(invocation, &reply);
    if (r < 0)
        return broken(invocation, r);
    *ret_last = !reply.continues;
    if (reply.error && invocation->lenient && is_farewell(reply.error))
        r = broken(invocation, -ECONNRESET);
    else if (reply.error)
        r = explain_error(reply.error, reply.parameters);
    else
        r = each(invocation, reply.parameters, !reply.continues, userdata);
    varlink_reply_deinit(&reply);
    return r;
}

static int receive_all(struct invocation *invocation, call_reply_fn each, void *userdata)
{
    bool last = false;
    int r = EXIT_OK;

    while (r == EXIT_OK && !last)
        r = receive_one(invocation, each, userdata, &last);
    return r;
}

int call_more(struct invocation *invocation, const char *method, json_t *parameters,
              call_reply_fn each, void *userdata)
{
    int r = send_call(invocation, method, parameters, true, true);

    return r == EXIT_OK ? receive_all(invocation, each, userdata) : r;
}

int call_parts(struct invocation *invocation, const char *method, json_t *parameters,
               call_reply_fn each, void *userdata)
{
    int r = send_call(invocation, method, parameters, true, false);

    return r == EXIT_OK ? receive_all(invocation, each, userdata) : r;
}

/*
 * Escapes U+007F to U+009F, which JSON allows but some terminals interpret. Jansson never splits a
 * character between two calls.
 */
static int write_json(const char *data, size_t size, void *userdata)
{
    const char *plain = data, *end = data + size;

    (void)userdata;
    for (size_t length; data < end; data += length) {
        const size_t left = (size_t)(end - data);

        length = utf8_character(data, left);
        if (length == 0 || *data == '\n' || utf8_printable(data, left) > 0) {
            length = length == 0 ? 1 : length;
            continue;
        }
        fwrite(plain, 1, (size_t)(data - plain), stdout);
        printf("\\u%04x", (unsigned char)data[length - 1]);
        plain = data + length;
    }
    fwrite(plain, 1, (size_t)(end - plain), stdout);
    return ferror(stdout) ? -1 : 0;
}

int call_print_json(const struct invocation *invocation, const json_t *document)
{
    size_t flags = invocation->out.is_terminal ? JSON_INDENT(2) : JSON_COMPACT;

    if (json_dump_callback(document, write_json, NULL, flags) < 0)
        return call_no_memory();
    putchar('\n');
    return EXIT_OK;
}

int call_print_json_line(const json_t *document)
{
    if (json_dump_callback(document, write_json, NULL, JSON_COMPACT) < 0)
        return call_no_memory();
    putchar('\n');
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

int call_no_memory(void)
{
    complain("out of memory");
    return EXIT_FAILED;
}
