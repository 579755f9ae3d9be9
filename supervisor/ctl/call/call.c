/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/call.h"

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/metrics/metrics.h"
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

    if (invocation->options.json && varlink_reply_is(reply, CALL_SUPERVISOR "BadConfiguration"))
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
 * Whether the call may succeed over a new connection. A stream also ends when the supervisor stops.
 */
static bool is_farewell(const char *error, bool stream)
{
    const char *dot = error ? strrchr(error, '.') : NULL;

    if (!dot)
        return false;
    return strcmp(dot, ".Restarting") == 0 || (stream && strcmp(dot, ".Stopping") == 0);
}

/* Returns an exit status; with EXIT_OK release the reply, which may be an error. */
static int receive(struct invocation *invocation, bool stream, struct varlink_reply *ret)
{
    int r = varlink_client_receive(&invocation->client, ret);

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

/* ---- pages ---- */

/* The largest page that the supervisor returns. */
#define PAGE_MAX 1000

/* Requests one page, replaces `*ret` by it, and appends its items to `items`. */
static int add_page(struct invocation *invocation, const char *method, json_t *parameters,
                    const char *array, json_t *items, json_t **ret)
{
    json_t *reply;
    int r = call(invocation, method, json_deep_copy(parameters), false, &reply);

    if (r != EXIT_OK)
        return r;
    json_decref(*ret);
    *ret = reply;
    return json_array_extend(items, json_object_get(reply, array)) < 0 ? call_no_memory() : EXIT_OK;
}

static int64_t page_size(int64_t limit, const json_t *items)
{
    int64_t left = limit - (int64_t)json_array_size(items);

    return limit > 0 && left < PAGE_MAX ? left : PAGE_MAX;
}

int pages_collect(struct invocation *invocation, const char *method, json_t *parameters,
                  const char *array, int64_t limit, json_t **ret)
{
    json_auto_t *items = json_array(), *reply = NULL;
    int r = parameters && items ? EXIT_OK : call_no_memory();

    while (r == EXIT_OK) {
        json_object_set_new(parameters, "limit", json_integer(page_size(limit, items)));
        r = add_page(invocation, method, parameters, array, items, &reply);
        if (r != EXIT_OK || !field_has(reply, "next") ||
            (limit > 0 && (int64_t)json_array_size(items) >= limit))
            break;
        json_object_set(parameters, "cursor", json_object_get(reply, "next"));
    }
    if (r == EXIT_OK && json_object_set(reply, array, items) < 0)
        r = call_no_memory();
    if (r == EXIT_OK)
        *ret = json_incref(reply);
    json_decref(parameters);
    return r;
}

/* ---- status ---- */

static json_t *last_of(json_t *array)
{
    return json_array_get(array, json_array_size(array) - 1);
}

/* Copies all members except cells, and appends the workers. */
static int update(json_t *into, const json_t *from)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        if (strcmp(key, "cells") != 0 && strcmp(key, "workers") != 0 &&
            json_object_set(into, key, value) < 0)
            return -ENOMEM;
    }
    return json_array_extend(json_object_get(into, "workers"), json_object_get(from, "workers"));
}

/* Appends named `items`. The first one may continue the last one of `to`. */
static int add_all(json_t *to, const json_t *items, const char *name,
                   int (*go_on)(json_t *into, const json_t *from))
{
    for (size_t i = 0; i < json_array_size(items); i++) {
        json_t *item = json_array_get(items, i), *before = last_of(to);
        int r;

        if (i == 0 && before && field_is(before, name, field_text(item, name)))
            r = go_on(before, item);
        else
            r = json_array_append(to, item);
        if (r < 0)
            return -ENOMEM;
    }
    return 0;
}

static int go_on_group(json_t *into, const json_t *from)
{
    json_t *cells = json_object_get(into, "cells");

    if (update(into, from) < 0)
        return -ENOMEM;
    return cells ? add_all(cells, json_object_get(from, "cells"), "key", update) : 0;
}

int parts_add_groups(json_t *groups, const json_t *part)
{
    return add_all(groups, part, "name", go_on_group);
}

static int add_reply(struct invocation *invocation, const json_t *parameters, bool last,
                     void *userdata)
{
    if (parts_add_groups(userdata, json_object_get(parameters, "groups")) < 0)
        return call_no_memory();
    return EXIT_OK;
}

int parts_of_status(struct invocation *invocation, const char *target, bool brief, json_t **ret)
{
    json_auto_t *groups = json_array();
    int r;

    if (!groups)
        return call_no_memory();
    r = call_more(invocation, CALL_SUPERVISOR "GetStatus",
                  json_pack("{s:s*, s:b}", "target", target, "brief", brief), false, add_reply,
                  groups);
    if (r != EXIT_OK)
        return r;
    *ret = json_pack("{s:O}", "groups", groups);
    return *ret ? EXIT_OK : call_no_memory();
}

static int join_metrics(struct invocation *invocation, const json_t *parameters, bool last,
                        void *userdata)
{
    return metrics_join(userdata, parameters) < 0 ? call_no_memory() : EXIT_OK;
}

int parts_of_metrics(struct invocation *invocation, json_t **ret)
{
    json_auto_t *whole = json_object();
    int r = whole ? call_more(invocation, CALL_SUPERVISOR "GetMetrics", json_object(), false,
                              join_metrics, whole)
                  : call_no_memory();

    if (r == EXIT_OK)
        *ret = json_incref(whole);
    return r;
}
