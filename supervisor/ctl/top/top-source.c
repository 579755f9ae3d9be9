/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/top/top-source.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/status-parts.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/metrics/metrics.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SUPERVISOR "io.troupe.Supervisor."
/* The deaths that are kept to be shown. */
#define DEATHS 50

int top_source_init(struct top_source *source, const char *socket, usec_t timeout)
{
    *source = (struct top_source){.socket = socket,
                                  .timeout = timeout,
                                  .client = VARLINK_CLIENT_NULL,
                                  .status = json_object(),
                                  .deaths = json_array(),
                                  .rounds = json_object(),
                                  .wanted = json_object(),
                                  .totals = json_object(),
                                  .totals_before = json_object()};
    if (source->status && source->rounds && source->wanted && source->deaths && source->totals &&
        source->totals_before)
        return 0;
    top_source_deinit(source);
    return -ENOMEM;
}

void top_source_deinit(struct top_source *source)
{
    varlink_client_deinit(&source->client);
    json_decref(source->metrics);
    json_decref(source->before);
    json_decref(source->status);
    json_decref(source->rounds);
    json_decref(source->wanted);
    json_decref(source->deaths);
    json_decref(source->totals);
    json_decref(source->totals_before);
    *source = (struct top_source){.client = VARLINK_CLIENT_NULL};
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
        else if (strcmp(name, "groups") == 0 || strcmp(name, "status") == 0)
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

/* Only these are answered in parts. */
static bool has_parts(const char *method)
{
    return strcmp(method, "GetStatus") == 0 || strcmp(method, "GetMetrics") == 0;
}

int top_source_call(struct top_source *source, const char *method, json_t *parameters, json_t **ret)
{
    char name[64];
    json_t *whole = json_object();
    int r = source->client.fd >= 0
                ? 0
                : varlink_client_init(&source->client, source->socket, source->timeout);

    source->problem[0] = '\0';
    (void)snprintf(name, sizeof(name), SUPERVISOR "%s", method);
    if (r < 0 || !whole || !parameters)
        json_decref(parameters);
    else
        r = varlink_client_send(&source->client, name, parameters, has_parts(method));
    if (!whole || !parameters)
        r = -ENOMEM;
    if (r < 0)
        (void)fail(source, r);
    for (int more = 1; r == 0 && more > 0;) {
        more = receive(source, whole);
        r = more < 0 ? more : 0;
    }
    if (r == 0 && ret)
        *ret = json_incref(whole);
    json_decref(whole);
    return r;
}

/* ---- a refresh ---- */

/* The names of an object. */
static json_t *names_of(const json_t *object)
{
    json_t *names = json_array(), *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)object, name, value)(void)
        json_array_append_new(names, json_string(name));
    return names;
}

/* Makes the parameter of GetMetrics that selects groups. */
static json_t *selections(const struct top_source *source)
{
    json_t *all = json_array(), *names;
    const char *group;

    if (source->wants_all)
        (void)json_array_append_new(all, json_object());
    json_object_foreach(source->wanted, group, names)
    {
        json_t *only = json_is_null(names) ? NULL : names_of(names);

        (void)json_array_append_new(all, json_pack("{s:s, s:o*}", "target", group, "only", only));
    }
    return all;
}

static int64_t started_at(const json_t *metrics)
{
    return field_int(json_object_get(metrics, "supervisor"), "started_at");
}

/* Takes the reply over. */
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
    SWAP(source->totals, source->totals_before);
    json_object_clear(source->totals);
}

/* Puts new deaths before those that are known. Returns 0 or -ENOMEM. */
static int take_deaths(struct top_source *source, json_t *deaths)
{
    size_t n;

    if (json_array_extend(deaths, source->deaths) < 0)
        return -ENOMEM;
    for (n = json_array_size(deaths); n > DEATHS; n--)
        (void)json_array_remove(deaths, n - 1);
    json_decref(source->deaths);
    source->deaths = json_incref(deaths);
    return 0;
}

/* The count of deaths begins again after a crash: all are asked for once more. */
static int follow_deaths(struct top_source *source, const json_t *reply, bool same)
{
    json_t *deaths = json_object_get(reply, "deaths");
    const uint64_t n = field_count(reply, "deaths_total");
    int r = 0;

    if (!same || n < source->n_deaths) {
        source->n_deaths = 0;
        (void)json_array_clear(source->deaths);
        return 0;
    }
    if (json_array_size(deaths) > 0)
        r = take_deaths(source, deaths);
    source->n_deaths = n;
    return r;
}

int top_source_refresh(struct top_source *source)
{
    json_t *parameters = json_pack("{s:o*, s:I}", "status", selections(source), "deaths_after",
                                   (json_int_t)source->n_deaths);
    json_t *reply;
    const bool first = !source->metrics;
    int r = top_source_call(source, "GetMetrics", parameters, &reply);

    if (r == 0) {
        take_metrics(source, reply);
        r = follow_deaths(source, reply, first || source->before);
    }
    if (r == 0)
        r = top_source_take_status(source, json_object_get(reply, "status"));
    (void)json_object_clear(source->wanted);
    return r;
}

double top_source_rate(struct top_source *source, const char *group, int64_t total)
{
    const json_t *before = json_object_get(source->totals_before, group);
    int64_t done;

    (void)json_object_set_new(source->totals, group, json_integer(total));
    if (!before || source->elapsed == 0)
        return -1;
    done = total - json_integer_value(before);
    return done < 0 ? -1 : (double)done * (double)USEC_PER_SEC / (double)source->elapsed;
}
