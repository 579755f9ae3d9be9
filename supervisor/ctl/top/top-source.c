/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/top/top-source.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/pages.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUPERVISOR "io.troupe.Supervisor."
/* The deaths that are shown at most. */
#define DEATHS 10

void top_source_init(struct top_source *source, const char *socket, usec_t timeout)
{
    *source =
        (struct top_source){.socket = socket, .timeout = timeout, .client = VARLINK_CLIENT_NULL};
}

void top_source_deinit(struct top_source *source)
{
    varlink_client_deinit(&source->client);
    json_decref(source->metrics);
    json_decref(source->before);
    json_decref(source->status);
    json_decref(source->deaths);
}

/* ---- calls ---- */

/* The connection is of no use any more. */
static int fail(struct top_source *source, int error)
{
    varlink_client_deinit(&source->client);
    (void)snprintf(source->problem, sizeof(source->problem), "no answer from trouped: %s",
                   strerror(-error));
    return error;
}

static int refuse(struct top_source *source, const struct varlink_reply *reply)
{
    const char *dot = strrchr(reply->error, '.');
    char *details = json_dumps(reply->parameters, JSON_COMPACT);

    (void)snprintf(source->problem, sizeof(source->problem), "%s %s",
                   SAFE(dot ? dot + 1 : reply->error), SAFE(details ? details : ""));
    free(details);
    if (dot && (strcmp(dot, ".Restarting") == 0 || strcmp(dot, ".Stopping") == 0))
        varlink_client_deinit(&source->client);
    return -EREMOTEIO;
}

/* Adds a reply to the ones before. Returns 0 or -ENOMEM. */
static int join(json_t *whole, const json_t *part)
{
    const char *name;
    json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)part, name, value)
    {
        json_t *before = json_object_get(whole, name);

        if (!json_is_array(before))
            r |= json_object_set(whole, name, value);
        else if (strcmp(name, "groups") == 0)
            r |= parts_add_groups(before, value);
        else
            r |= json_array_extend(before, value);
    }
    return r == 0 ? 0 : -ENOMEM;
}

/* Receives one reply. Returns whether there are more, or -errno. */
static int receive(struct top_source *source, json_t *whole)
{
    struct varlink_reply reply;
    int r = varlink_client_receive(&source->client, &reply);

    if (r < 0)
        return fail(source, r);
    if (reply.error)
        r = refuse(source, &reply);
    else
        r = join(whole, reply.parameters);
    if (r == 0)
        r = reply.continues;
    varlink_reply_deinit(&reply);
    return r;
}

static int send_call(struct top_source *source, const char *method, const json_t *parameters)
{
    const bool parts = strcmp(method, "ListDeaths") != 0;
    char name[64];
    int r = source->client.fd >= 0
                ? 0
                : varlink_client_init(&source->client, source->socket, source->timeout);

    (void)snprintf(name, sizeof(name), SUPERVISOR "%s", method);
    if (r == 0)
        r = varlink_client_send(&source->client, name, json_deep_copy(parameters), parts);
    return r < 0 ? fail(source, r) : 0;
}

/* Makes a call, joins the replies, and puts the result in the place of `*ret`. Takes `parameters`
 * over. */
static int call_for(struct top_source *source, const char *method, json_t *parameters, json_t **ret)
{
    json_auto_t *whole = json_object(), *given = parameters;
    int more = 1, r;

    source->problem[0] = '\0';
    if (!whole || !given)
        return fail(source, -ENOMEM);
    r = send_call(source, method, given);
    while (r == 0 && more > 0) {
        more = receive(source, whole);
        r = more < 0 ? more : 0;
    }
    if (r < 0)
        return r;
    json_decref(*ret);
    *ret = json_incref(whole);
    return 0;
}

/* ---- a refresh ---- */

static int64_t started_at(const json_t *metrics)
{
    return field_int(json_object_get(metrics, "supervisor"), "started_at");
}

/* Counters begin again in another supervisor. Takes the reply over. */
static void take_metrics(struct top_source *source, json_t *metrics)
{
    const usec_t now = clock_now();
    const bool same = source->metrics && started_at(source->metrics) == started_at(metrics);

    json_decref(source->before);
    source->before = same ? source->metrics : NULL;
    if (!same)
        json_decref(source->metrics);
    source->metrics = metrics;
    source->elapsed = same ? usec_sub(now, source->at) : 0;
    source->at = now;
}

/* Asks for the group of `open` that exists, or if there are several, for all groups. */
static int refresh_status(struct top_source *source, const json_t *open)
{
    const json_t *groups = json_object_get(source->metrics, "groups");
    const char *target = NULL;
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const char *name = field_text(json_array_get(groups, i), "name");

        if (!json_object_get(open, name))
            continue;
        target = n++ > 0 ? NULL : name;
    }
    return n > 0 ? call_for(source, "GetStatus", json_pack("{s:s*}", "target", target),
                            &source->status)
                 : 0;
}

int top_source_refresh(struct top_source *source, const json_t *open)
{
    json_t *metrics = NULL;
    int r = call_for(source, "GetMetrics", json_object(), &metrics);

    if (r < 0)
        return r;
    take_metrics(source, metrics);
    r = call_for(source, "ListDeaths", json_pack("{s:i}", "limit", DEATHS), &source->deaths);
    return r == 0 ? refresh_status(source, open) : r;
}
