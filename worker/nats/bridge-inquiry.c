/* SPDX-License-Identifier: MIT */

/* The supervisor's answers about jobs: which are in progress, which will never begin, and how
 * workers died. */

#include "worker/nats/bridge.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest death reports of one job, in bytes: they go into a header. */
#define REPORTS_MAX 40000u

static void tell_in_progress(struct bridge *bridge, struct flight *flight)
{
    if (!bridge->engine.connected)
        return;
    engine_acknowledge(&bridge->engine, flight->message, "+WPI");
    if (!engine_is_behind(&bridge->engine))
        flight_heard(&bridge->flights, flight, clock_now());
}

/* The job's end follows, unless a worker has the job. In that case, and if the ring is full, the
 * next beat asks about the job again. */
static void withdraw(struct bridge *bridge, struct flight *flight)
{
    char id[TROUPE_ID_SIZE];

    flight_id(flight, bridge->config->stream, id);
    (void)troupe_client_withdraw(bridge->client, id);
    tell_in_progress(bridge, flight);
}

/* The last deaths come first, and count more. */
static void add_death(struct flight *flight, const char *json, size_t size)
{
    const char *before = flight->reports ? flight->reports : "";
    char *reports = NULL;

    if (strlen(before) + size > REPORTS_MAX ||
        asprintf(&reports, "%s%s%.*s", before, *before != '\0' ? "," : "", (int)size, json) < 0)
        return;
    free(flight->reports);
    flight->reports = reports;
}

static void on_dead(struct bridge *bridge, struct flight *flight, enum question_type question,
                    enum inquiry_answer answer, struct troupe_query *query)
{
    size_t size;
    const char *json = query ? troupe_query_json(query, &size) : NULL;

    if (answer == INQUIRY_BEGIN) {
        free(flight->reports);
        flight->reports = NULL;
    } else if (json && question == QUESTION_JOB) {
        flight->job = strndup(json, size);
    } else if (json) {
        add_death(flight, json, size);
    } else if (question == QUESTION_JOB && flight->job) {
        inquiry_ask(&bridge->inquiry, flight);
    } else if (!query) {
        publisher_publish(&bridge->publisher, flight, FLIGHT_LETTER, clock_now());
    }
}

/* The next supervisor will have the job and recognise it, so the message stays with this machine.
 */
static void on_left(struct bridge *bridge, struct flight *flight, bool over)
{
    tell_in_progress(bridge, flight);
    if (over)
        flight_free(&bridge->flights, flight);
}

/* Whether the job waits, and no worker will get it. */
static bool waits_forever(const json_t *answer)
{
    const char *state = json_string_value(json_object_get(answer, "state"));
    struct obstacles obstacles = OBSTACLES_NULL;
    const json_t *wait;
    size_t i;

    json_array_foreach(json_object_get(answer, "waits"), i, wait)
    {
        obstacles_note(&obstacles, json_string_value(json_object_get(wait, "cause")));
    }
    return state && strcmp(state, "running") != 0 && obstacles_are_lasting(&obstacles);
}

static void on_waits(struct bridge *bridge, struct flight *flight, struct troupe_query *query)
{
    size_t size;
    const char *text = troupe_query_json(query, &size);
    json_auto_t *answer = text ? json_loadb(text, size, 0, NULL) : NULL;

    if (flight->claim != FLIGHT_SUBMITTED)
        flight->claim = FLIGHT_RESUMED; /* it is live, so it can only be withdrawn from now on */
    if (bridge->stopping || waits_forever(answer))
        withdraw(bridge, flight);
    else
        tell_in_progress(bridge, flight);
}

static void on_here(struct bridge *bridge, struct flight *flight, enum inquiry_answer answer,
                    struct troupe_query *query)
{
    if (answer == INQUIRY_BEGIN || answer == INQUIRY_END)
        return;
    if (answer == INQUIRY_LEFT)
        on_left(bridge, flight, bridge->stopping && flight->left);
    else if (flight->left && answer == INQUIRY_RECORD) /* its end is not waited for any more */
        on_left(bridge, flight, true);
    else if (flight->left)
        bridge_give_back(bridge, flight);
    else if (answer == INQUIRY_RECORD)
        on_waits(bridge, flight, query);
}

static void on_group(struct bridge *bridge, enum inquiry_answer answer, struct troupe_query *query)
{
    if (answer == INQUIRY_BEGIN)
        bridge->obstacles = (struct obstacles)OBSTACLES_NULL;
    else if (answer == INQUIRY_RECORD)
        obstacles_note(&bridge->obstacles, troupe_query_text(query, "cause"));
    else if (answer == INQUIRY_END)
        bridge_set_down(bridge, obstacles_to_new_jobs(&bridge->obstacles), bridge->obstacles.cause);
    else if (answer == INQUIRY_UNKNOWN)
        bridge_set_down(bridge, true, "removed");
}

void bridge_on_inquiry(void *userdata, struct flight *flight, enum question_type question,
                       enum inquiry_answer answer, struct troupe_query *query)
{
    struct bridge *bridge = userdata;

    if (question == QUESTION_GROUP)
        on_group(bridge, answer, query);
    else if (question == QUESTION_GROUPS)
        report_note(&bridge->report, answer, query);
    else if (question == QUESTION_JOBS)
        bridge_adopt(bridge, answer, query);
    else if (flight->state == FLIGHT_DYING && question != QUESTION_WAITS)
        on_dead(bridge, flight, question, answer, query);
    else if (flight->state == FLIGHT_HERE)
        on_here(bridge, flight, answer, query);
}
