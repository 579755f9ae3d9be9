/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/call.h"

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/hint.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/terminal.h"
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
    if (invocation->waits && error == -ETIMEDOUT)
        return EXIT_TIMEOUT;
    return explain_broken(error);
}

/* Takes ownership of `parameters`. */
static int send_call(struct invocation *invocation, const char *method, json_t *parameters,
                     bool more, bool patient)
{
    int r = parameters ? open_client(invocation, patient) : call_no_memory();

    if (r != EXIT_OK) {
        json_decref(parameters);
        return r;
    }
    r = varlink_client_send(&invocation->client, method, parameters, more);
    return r < 0 ? broken(invocation, r) : EXIT_OK;
}

/* Takes ownership of the reply. With --json, problems of the configuration are printed as JSON. */
static int take_answer(const struct invocation *invocation, struct varlink_reply *reply,
                       json_t **ret)
{
    int r = EXIT_OK;

    if (reply->error && invocation->options.json &&
        strcmp(reply->error, CALL_SUPERVISOR "BadConfiguration") == 0)
        r = output_json(invocation, reply->parameters) == EXIT_OK ? EXIT_INVALID : EXIT_FAILED;
    else if (reply->error)
        r = explain_error(reply->error, reply->parameters);
    else
        *ret = json_incref(reply->parameters);
    varlink_reply_deinit(reply);
    return r;
}

int call_open(struct invocation *invocation)
{
    return open_client(invocation, false);
}

/*
 * Whether the call may succeed over a new connection. A stream also ends when the supervisor stops,
 * and when it was read too slowly.
 */
static bool is_farewell(const char *error, bool stream)
{
    const char *dot = error ? strrchr(error, '.') : NULL;

    if (!dot)
        return false;
    return strcmp(dot, ".Restarting") == 0 ||
           (stream && (strcmp(dot, ".Stopping") == 0 || strcmp(dot, ".TooSlow") == 0));
}

static void cancel_awaited(struct invocation *invocation)
{
    json_t *parameters = json_pack("{s:s}", "id", invocation->awaited);

    invocation->cancels = false;
    complain("cancelling the job; a second signal exits without waiting for its end");
    json_decref(hint_call(invocation, CALL_JOBS "Cancel", parameters));
}

static void await_job(struct invocation *invocation)
{
    const usec_t deadline = clock_deadline(invocation->client.timeout);
    struct hint hint = hint_make(invocation);
    bool readable = false;

    while (!readable && clock_now() < deadline) {
        const usec_t glance = invocation->cancels ? clock_deadline(INTERRUPT_GLANCE) : deadline;

        readable = hint_await(&hint, invocation->awaited, invocation->client.fd,
                              glance < deadline ? glance : deadline);
        if (!readable && invocation->cancels && interrupt_seen())
            cancel_awaited(invocation);
    }
    invocation->client.timeout = clock_left(deadline);
}

/* Returns an exit status; with EXIT_OK release the reply, which may be an error. */
static int receive(struct invocation *invocation, bool stream, struct varlink_reply *ret)
{
    int r;

    if (invocation->awaited)
        await_job(invocation);
    r = varlink_client_receive(&invocation->client, ret);

    if (r == 0 && invocation->lenient && is_farewell(ret->error, stream)) {
        varlink_reply_deinit(ret);
        r = -ECONNRESET;
    }
    return r < 0 ? broken(invocation, r) : EXIT_OK;
}

int call_any(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
             struct varlink_reply *ret)
{
    int r = send_call(invocation, method, parameters, false, patient);

    return r == EXIT_OK ? receive(invocation, false, ret) : r;
}

int call(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
         json_t **ret)
{
    struct varlink_reply reply;
    int r = call_any(invocation, method, parameters, patient, &reply);

    return r == EXIT_OK ? take_answer(invocation, &reply, ret) : r;
}

int call_print(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
               output_fn show)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, method, parameters, patient, &reply);

    return r == EXIT_OK ? output_reply(invocation, reply, show) : r;
}

static int receive_one(struct invocation *invocation, call_reply_fn each, void *userdata,
                       bool *ret_last)
{
    struct varlink_reply reply;
    int r = receive(invocation, true, &reply);

    if (r != EXIT_OK)
        return r;
    *ret_last = !reply.continues;
    if (reply.error)
        r = explain_error(reply.error, reply.parameters);
    else
        r = each(invocation, reply.parameters, !reply.continues, userdata);
    varlink_reply_deinit(&reply);
    return r;
}

int call_more(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
              call_reply_fn each, void *userdata)
{
    bool last = false;
    int r = send_call(invocation, method, parameters, true, patient);

    while (r == EXIT_OK && !last)
        r = receive_one(invocation, each, userdata, &last);
    return r;
}

int call_no_memory(void)
{
    complain("out of memory");
    return EXIT_FAILED;
}
