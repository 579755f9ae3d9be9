/* SPDX-License-Identifier: MIT */

/* What the supervisor answers about jobs: which are in progress, which wait too long or in vain,
 * and how workers died. */

#include "worker/nats/bridge-private.h"
#include "worker/nats/message.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest death reports of one job, in bytes: they go into a header. */
#define REPORTS_MAX 40000u

static bool is_in_state(struct troupe_query *query, const char *name)
{
    const char *state = troupe_query_text(query, "state");

    return state && strcmp(state, name) == 0;
}

/* Whether no worker has the job, so that another machine may take it. */
static bool waits_here(struct troupe_query *query)
{
    return is_in_state(query, "queued") || is_in_state(query, "delayed") ||
           is_in_state(query, "backoff");
}

/* When the job could have begun first. */
static usec_t due_at(const struct flight *flight, const struct troupe_query *query)
{
    struct troupe_job_options options;
    const char *problem;

    if (message_options(flight->message, &options, &problem) != 0)
        options.delay_usec = 0;
    return message_due(flight->message, options.delay_usec,
                       (usec_t)troupe_query_number(query, "created_at", 0));
}

/* Whether the job has waited too long for its first attempt. */
static bool is_overdue(const struct bridge *bridge, const struct flight *flight,
                       struct troupe_query *query)
{
    const usec_t give_back = bridge->config->give_back;

    return give_back > 0 && is_in_state(query, "queued") &&
           troupe_query_number(query, "attempt", 0) == 0 &&
           usec_sub(clock_realtime(), due_at(flight, query)) >= give_back;
}

static void tell_in_progress(struct bridge *bridge, struct flight *flight)
{
    if (!bridge->engine.connected)
        return;
    engine_acknowledge(&bridge->engine, flight->message, "+WPI");
    if (!engine_is_behind(&bridge->engine))
        flight_heard(&bridge->flights, flight, clock_now());
}

/* Its end follows, unless a worker has got it. Then, and without room in the ring, the next beat
 * asks about it again. */
static void withdraw(struct bridge *bridge, struct flight *flight)
{
    char id[TROUPE_ID_SIZE];

    flight_id(flight, bridge->config->stream, id);
    (void)troupe_client_withdraw(bridge->client, id);
    tell_in_progress(bridge, flight);
}

static enum inquiry_step on_dead_job(struct bridge *bridge, struct flight *flight,
                                     struct troupe_query *query)
{
    size_t size;
    const char *json = query ? troupe_query_json(query, &size) : NULL;

    free(flight->job);
    free(flight->reports);
    flight->job = json ? strndup(json, size) : NULL;
    flight->reports = NULL;
    if (flight->job)
        return INQUIRY_DEATHS;
    publisher_publish(&bridge->publisher, flight, clock_now());
    return INQUIRY_OVER;
}

/* The last deaths come first, and count more. */
static void on_death(struct bridge *bridge, struct flight *flight, struct troupe_query *query)
{
    const char *before = flight->reports ? flight->reports : "";
    char *reports = NULL;
    size_t size;
    const char *json = query ? troupe_query_json(query, &size) : NULL;

    if (!query)
        publisher_publish(&bridge->publisher, flight, clock_now());
    if (!json || strlen(before) + size > REPORTS_MAX ||
        asprintf(&reports, "%s%s%.*s", before, *before != '\0' ? "," : "", (int)size, json) < 0)
        return;
    free(flight->reports);
    flight->reports = reports;
}

/* The next supervisor has the job, and recognises it: it is not for another machine. */
static void on_left(struct bridge *bridge, struct flight *flight, bool over)
{
    tell_in_progress(bridge, flight);
    if (over)
        flight_free(&bridge->flights, flight);
}

static enum inquiry_step on_job(struct bridge *bridge, struct flight *flight,
                                struct troupe_query *query)
{
    bridge->obstacles = (struct obstacles)OBSTACLES_NULL;
    if (flight->left) { /* its end is not waited for any more */
        if (query)
            on_left(bridge, flight, true);
        else
            bridge_give_back(bridge, flight);
        return INQUIRY_OVER;
    }
    if (!query)
        return INQUIRY_OVER;
    if (flight->claim != FLIGHT_SUBMITTED)
        flight->claim = FLIGHT_RESUMED; /* it lives: it is withdrawn only from now on */
    if (!waits_here(query)) {
        tell_in_progress(bridge, flight);
        return INQUIRY_OVER;
    }
    if (is_overdue(bridge, flight, query))
        bridge_quieten(bridge, clock_now());
    else if (!bridge->stopping)
        return INQUIRY_WAITS;
    withdraw(bridge, flight);
    return INQUIRY_OVER;
}

static void on_wait(struct bridge *bridge, struct flight *flight, struct troupe_query *query)
{
    const char *cause = query ? troupe_query_text(query, "cause") : NULL;

    if (cause)
        obstacles_note(&bridge->obstacles, cause);
    if (query)
        return;
    if (obstacles_are_lasting(&bridge->obstacles))
        withdraw(bridge, flight);
    else
        tell_in_progress(bridge, flight);
}

enum inquiry_step bridge_on_inquiry(void *userdata, struct flight *flight, enum inquiry_step step,
                                    struct troupe_query *query)
{
    struct bridge *bridge = userdata;

    if (flight->state == FLIGHT_DEAD && (step == INQUIRY_JOB || step == INQUIRY_LEFT))
        return on_dead_job(bridge, flight, query);
    if (flight->state == FLIGHT_DEAD)
        on_death(bridge, flight, query);
    if (flight->state != FLIGHT_HERE)
        return INQUIRY_OVER;
    if (step == INQUIRY_JOB)
        return on_job(bridge, flight, query);
    if (step == INQUIRY_LEFT) {
        on_left(bridge, flight, bridge->stopping && flight->left);
        return INQUIRY_OVER;
    }
    on_wait(bridge, flight, query);
    return INQUIRY_OVER;
}
