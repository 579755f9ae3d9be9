/* SPDX-License-Identifier: MIT */

/* The supervisor's answers about jobs: which are in progress, which will never begin, and how
 * workers died; and about the group. */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/quantity.h"
#include "worker/nats/bridge.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest death reports of one job, in bytes: they go into a header. */
#define REPORTS_MAX 40000u

/* ---- obstacles ---- */

static const struct {
    const char *cause;
    enum obstacle obstacle;
} causes[] = {
    {"removed", OBSTACLE_CLOSED},    {"draining", OBSTACLE_DRAINING},
    {"store_full", OBSTACLE_CLOSED}, {"store_failed", OBSTACLE_CLOSED},
    {"fault", OBSTACLE_DOWN},        {"safe_mode", OBSTACLE_DOWN},
    {"failed", OBSTACLE_ABSENT},     {"stopped", OBSTACLE_ABSENT},
    {"starting", OBSTACLE_COMING},   {"backoff", OBSTACLE_COMING},
    {"after", OBSTACLE_COMING},      {"busy", OBSTACLE_BUSY},
    {"key_limits", OBSTACLE_KEYS},
};

/* `cause` may be NULL. */
static void note_obstacle(struct obstacles *obstacles, const char *cause)
{
    for (size_t i = 0; i < ELEMENTS(causes) && cause; i++) {
        if (strcmp(causes[i].cause, cause) != 0)
            continue;
        obstacles->seen |= causes[i].obstacle;
        if (!obstacles->cause &&
            !(causes[i].obstacle & (OBSTACLE_COMING | OBSTACLE_BUSY | OBSTACLE_KEYS)))
            obstacles->cause = causes[i].cause;
    }
}

/* Whether these obstacles keep a waiting job from being done here. */
static bool are_lasting(const struct obstacles *obstacles)
{
    const unsigned seen = obstacles->seen;

    return seen & OBSTACLE_DOWN || (seen & OBSTACLE_ABSENT && !(seen & OBSTACLE_COMING)) ||
           (seen & OBSTACLE_DRAINING && !(seen & (OBSTACLE_COMING | OBSTACLE_BUSY)));
}

/* Whether these obstacles keep a new job from being done here. */
static bool hinder_new_jobs(const struct obstacles *obstacles)
{
    return obstacles->seen & (OBSTACLE_CLOSED | OBSTACLE_DRAINING) || are_lasting(obstacles);
}

/* ---- answers ---- */

static void tell_in_progress(struct bridge *bridge, struct flight *flight)
{
    if (!bridge->engine.connected)
        return;
    engine_acknowledge(&bridge->engine, flight->message, "+WPI");
    if (!engine_is_behind(&bridge->engine))
        flight_heard(&bridge->flights, flight, clock_now());
}

/* Withdraws the job, whose end follows unless a worker has the job. In that case, and if the ring
 * is full, the next beat asks about the job again. */
static void withdraw(struct bridge *bridge, struct flight *flight)
{
    char id[TROUPE_ID_SIZE];

    flight_id(flight, bridge->config->stream, id);
    (void)troupe_client_withdraw(bridge->client, id);
    tell_in_progress(bridge, flight);
}

/* Adds a death report, if there is room. The latest come first, because they matter most. */
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
    struct obstacles obstacles = {.seen = 0};
    const json_t *wait;
    size_t i;

    json_array_foreach(json_object_get(answer, "waits"), i, wait)
    {
        note_obstacle(&obstacles, json_string_value(json_object_get(wait, "cause")));
    }
    return state && strcmp(state, "running") != 0 && are_lasting(&obstacles);
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

/* Withdraws the newest jobs of keys that exceed their shares, if no room is left for others. Skips
 * jobs of earlier deliveries, which would be submitted again. */
static void withdraw_excess(struct bridge *bridge)
{
    struct list *here = &bridge->flights.lists[FLIGHT_HERE];
    unsigned n = bridge_n_open(bridge);

    if (n < bridge->limit)
        return;
    for (struct list *node = here->prev; node != here; node = node->prev) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (flight->claim == FLIGHT_RECOGNISED || flight->claim == FLIGHT_SOUGHT ||
            !bridge_exceeds_share(bridge, flight, n))
            continue;
        withdraw(bridge, flight);
        flight_leave_key(&bridge->flights, flight);
        n--;
    }
}

static void on_obstacles(struct bridge *bridge)
{
    bridge->keys_wait = bridge->obstacles.seen & OBSTACLE_KEYS;
    if (bridge->keys_wait)
        withdraw_excess(bridge);
    bridge_set_down(bridge, hinder_new_jobs(&bridge->obstacles), bridge->obstacles.cause);
}

static void on_group(struct bridge *bridge, enum inquiry_answer answer, struct troupe_query *query)
{
    if (answer == INQUIRY_BEGIN)
        bridge->obstacles = (struct obstacles){.seen = 0};
    else if (answer == INQUIRY_RECORD)
        note_obstacle(&bridge->obstacles, troupe_query_text(query, "cause"));
    else if (answer == INQUIRY_END)
        on_obstacles(bridge);
    else if (answer == INQUIRY_UNKNOWN)
        bridge_set_down(bridge, true, "removed");
}

static int parse_number(const char **text, uint64_t *ret)
{
    return **text == ':' && quantity_parse_number(*text + 1, ret, text) == 0 ? 0 : -EINVAL;
}

/* Reads the id that flight_id() writes. Returns 0, or -EINVAL for any other id. */
static int parse_id(const char *id, const char *stream, uint64_t *ret_sequence, uint64_t *ret_tries)
{
    const size_t length = strlen(stream);
    const char *end = id + length;

    *ret_tries = 0;
    if (strncmp(id, stream, length) != 0 || parse_number(&end, ret_sequence) < 0 ||
        *ret_sequence == 0)
        return -EINVAL;
    if (*end != '\0' && (parse_number(&end, ret_tries) < 0 || *ret_tries > UINT_MAX))
        return -EINVAL;
    return *end == '\0' ? 0 : -EINVAL;
}

/* Puts a job that an earlier run of this program has submitted into flight again, before the server
 * delivers its message again, maybe to another machine. */
static void adopt(struct bridge *bridge, struct troupe_query *job)
{
    const struct config *config = bridge->config;
    const char *id = troupe_query_text(job, "id"), *key = troupe_query_text(job, "key");
    uint64_t sequence, tries;
    struct flight *flight;
    natsMsg *message;
    usec_t now = clock_now();

    /* InFlight= may be smaller than it was. */
    if (!id || parse_id(id, config->stream, &sequence, &tries) < 0 ||
        flight_find(&bridge->flights, sequence) || bridge->flights.n >= CONFIG_IN_FLIGHT_MAX)
        return;
    message = message_stand_in(config->stream, config_consumer(config), sequence);
    flight = message ? flight_new(&bridge->flights, sequence, message, now) : NULL;
    if (!flight) {
        natsMsg_Destroy(message);
        return;
    }
    flight->kind = FLIGHT_STAND_IN;
    flight->claim = FLIGHT_RESUMED;
    flight->tries = (unsigned)tries;
    if (key)
        flight_set_key(&bridge->flights, flight, key);
    bridge->n_adopted++;
    bridge_submit(bridge, flight, now);
}

static void on_jobs(struct bridge *bridge, enum inquiry_answer answer, struct troupe_query *job)
{
    if (answer == INQUIRY_RECORD)
        adopt(bridge, job);
    else if (answer == INQUIRY_END && bridge->n_adopted > 0)
        log_info("group %s: continues %u jobs of an earlier run", bridge->config->group,
                 bridge->n_adopted);
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
        on_jobs(bridge, answer, query);
    else if (flight->state == FLIGHT_DYING && question != QUESTION_WAITS)
        on_dead(bridge, flight, question, answer, query);
    else if (flight->state == FLIGHT_HERE)
        on_here(bridge, flight, answer, query);
}
