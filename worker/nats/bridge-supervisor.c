/* SPDX-License-Identifier: MIT */

/* The side of the bridge that the supervisor is on: jobs. */

#include "shared/base/log.h"
#include "worker/nats/bridge-private.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* When messages that the supervisor had no room for are tried again, if no job ends before. */
#define HELD_RETRY USEC_PER_SEC
/* After the supervisor has refused a job for now: for the engine, and for this program. */
#define GIVE_BACK_PAUSE USEC_PER_SEC
#define PULL_PAUSE      (5 * USEC_PER_SEC)

static void hold(struct bridge *bridge, struct flight *flight, usec_t now)
{
    flight_set_state(&bridge->flights, flight, FLIGHT_HELD);
    bridge->held_at = now + HELD_RETRY;
}

/* It can never be a job. Takes over nothing; `problem` is copied. */
static void refuse(struct bridge *bridge, struct flight *flight, const char *problem, usec_t now)
{
    log_warning("message %llu of stream %s: %s", (unsigned long long)flight_sequence(flight),
                bridge->config->stream, problem);
    flight->problem = strdup(problem);
    if (!flight->problem) {
        hold(bridge, flight, now);
        return;
    }
    flight_set_state(&bridge->flights, flight, FLIGHT_DEAD);
    bridge_publish(bridge, flight, now);
}

static int submit(struct bridge *bridge, struct flight *flight, const char **ret_problem)
{
    struct troupe_job_options options;
    char id[TROUPE_ID_SIZE];
    int r = message_options(flight->message, &options, ret_problem);

    if (r != 0)
        return r;
    flight_id(flight, bridge->config->stream, id);
    options.id = id;
    return troupe_client_submit(
        bridge->client, bridge->group, &options, natsMsg_GetData(flight->message),
        (size_t)natsMsg_GetDataLength(flight->message), flight_sequence(flight));
}

static int wait_for_end(struct bridge *bridge, struct flight *flight)
{
    char id[TROUPE_ID_SIZE];

    flight_id(flight, bridge->config->stream, id);
    return troupe_client_wait(bridge->client, id, flight_sequence(flight));
}

void bridge_submit(struct bridge *bridge, struct flight *flight, usec_t now)
{
    const char *problem = "the job cannot be submitted: malformed, or too large";
    int r = flight->wants_wait ? wait_for_end(bridge, flight) : submit(bridge, flight, &problem);

    if (r == 0)
        flight_set_state(&bridge->flights, flight, FLIGHT_HERE);
    else if (r == MESSAGE_E_BAD || r == -EINVAL || r == -EMSGSIZE)
        refuse(bridge, flight, problem, now);
    else
        hold(bridge, flight, now); /* the ring is full, or memory is short; -EPIPE shows later */
}

/* The same message under another id, or the same job once more. */
static void submit_again(struct bridge *bridge, struct flight *flight, bool waits, usec_t now)
{
    flight->wants_wait = waits;
    bridge_submit(bridge, flight, now);
}

/* The supervisor refuses all jobs for now. */
static void give_up(struct bridge *bridge, struct flight *flight,
                    const struct troupe_result *result, usec_t now)
{
    if (bridge->n_refused++ == 0)
        log_warning("group %s takes no jobs: %s; messages are given back", bridge->config->group,
                    *result->reason != '\0' ? result->reason : strerror(-result->error));
    puller_pause(&bridge->puller, now + PULL_PAUSE);
    bridge_give_back(bridge, flight, GIVE_BACK_PAUSE);
}

static void on_refused(struct bridge *bridge, struct flight *flight,
                       const struct troupe_result *result, usec_t now)
{
    switch (-result->error) {
    case EEXIST: /* an earlier delivery has brought it here */
        flight->recognised = true;
        submit_again(bridge, flight, true, now);
        return;
    case ECONNRESET: /* the supervisor was replaced: what became of it? */
        submit_again(bridge, flight, true, now);
        return;
    case ESRCH: /* it is not here, or not any more */
        if (flight->given_back)
            bridge_give_back(bridge, flight, 0);
        else
            submit_again(bridge, flight, false, now);
        return;
    case EBUSY:
    case ENOSPC:
    case ENOMEM:
        hold(bridge, flight, now);
        bridge->limit = bridge->flights.n_here > 0 ? bridge->flights.n_here : 1;
        return;
    case EINVAL:
    case EMSGSIZE:
        refuse(bridge, flight, result->reason, now);
        return;
    case ESHUTDOWN: /* if it is on disk, the next supervisor has it, and recognises it */
        flight_free(&bridge->flights, flight);
        puller_pause(&bridge->puller, now + PULL_PAUSE);
        return;
    default:
        give_up(bridge, flight, result, now);
    }
}

#define BY_UID "cancelled by uid "

/* By somebody who wants the job not to be done, rather than by a group that ends. */
static bool is_by_request(const struct troupe_result *result)
{
    return strncmp(result->reason, BY_UID, strlen(BY_UID)) == 0;
}

/* By the user of this program, which does so to give a job back. Nothing tells whether that user
 * has done so by other means. */
static bool is_by_this_user(const struct troupe_result *result)
{
    char reason[sizeof(BY_UID) + 10];

    (void)snprintf(reason, sizeof(reason), BY_UID "%u", (unsigned)geteuid());
    return strcmp(result->reason, reason) == 0;
}

static void on_cancelled(struct bridge *bridge, struct flight *flight, usec_t now)
{
    if (flight->given_back || !is_by_request(&flight->result)) {
        bridge_give_back(bridge, flight, 0);
        return;
    }
    if (flight->recognised && is_by_this_user(&flight->result)) {
        /* It was given back before, and has come again. */
        troupe_result_release(&flight->result);
        flight->recognised = false;
        flight->tries++;
        submit_again(bridge, flight, false, now);
        return;
    }
    flight_set_state(&bridge->flights, flight, FLIGHT_ENDED);
    bridge_publish(bridge, flight, now);
}

static void on_ended(struct bridge *bridge, struct flight *flight, usec_t now)
{
    bridge->n_refused = 0;
    bridge->held_at = 0;
    if (bridge->limit < bridge->config->in_flight)
        bridge->limit++;
    if (flight->result.end == TROUPE_CANCELLED && !flight->result.timed_out) {
        on_cancelled(bridge, flight, now);
        return;
    }
    if (flight->result.end == TROUPE_DEAD) {
        flight_set_state(&bridge->flights, flight, FLIGHT_DEAD);
        flight->sent_at = now; /* without an answer it is published later, without reports */
        inquiry_ask(&bridge->inquiry, flight);
        return;
    }
    flight_set_state(&bridge->flights, flight, FLIGHT_ENDED);
    bridge_publish(bridge, flight, now);
}

static void on_result(struct bridge *bridge, struct troupe_result *result, usec_t now)
{
    struct flight *flight = flight_find(&bridge->flights, result->cookie);

    if (!flight || flight->state != FLIGHT_HERE) {
        troupe_result_release(result);
    } else if (result->error < 0) {
        on_refused(bridge, flight, result, now);
        troupe_result_release(result);
    } else {
        flight->result = *result;
        on_ended(bridge, flight, now);
    }
}

void bridge_lose_supervisor(struct bridge *bridge, int error)
{
    log_error("the supervisor is gone: %s", strerror(-error));
    bridge->over = true;
    bridge->status = error;
}

void bridge_take_results(struct bridge *bridge, usec_t now)
{
    int r;

    for (;;) {
        struct troupe_result result = TROUPE_RESULT_INIT;

        r = troupe_client_next(bridge->client, &result, 0);
        if (r < 0)
            break;
        on_result(bridge, &result, now);
    }
    if (r == -EAGAIN || r == -EINTR)
        return;
    bridge_lose_supervisor(bridge, r);
}

/* Whether the job waits for its first attempt, so that another machine may take it. */
static bool has_not_begun(struct troupe_query *query)
{
    const char *state = troupe_query_text(query, "state");

    return state && (strcmp(state, "queued") == 0 || strcmp(state, "delayed") == 0) &&
           troupe_query_number(query, "attempt", 0) == 0;
}

/* When the job could have begun first. */
static usec_t due_at(const struct flight *flight, const struct troupe_query *query)
{
    struct troupe_job_options options;
    const char *problem;

    if (message_options(flight->message, &options, &problem) != 0)
        options.delay_usec = 0;
    return usec_add((usec_t)troupe_query_number(query, "created_at", 0), options.delay_usec);
}

static bool is_to_be_given_back(const struct bridge *bridge, const struct flight *flight,
                                struct troupe_query *query)
{
    const usec_t give_back = bridge->config->give_back;

    if (!has_not_begun(query))
        return false;
    if (bridge->stopping)
        return true;
    return give_back > 0 && strcmp(troupe_query_text(query, "state"), "queued") == 0 &&
           usec_sub(clock_realtime(), due_at(flight, query)) >= give_back;
}

/* Its end follows. Without room in the ring, the next beat asks about it again. */
static void cancel(struct bridge *bridge, struct flight *flight)
{
    char id[TROUPE_ID_SIZE];

    flight_id(flight, bridge->config->stream, id);
    if (troupe_client_abandon(bridge->client, id) == 0)
        flight->given_back = true;
}

static void on_deaths(struct bridge *bridge, struct flight *flight, struct troupe_query *query)
{
    size_t size;
    const char *json = query ? troupe_query_json(query, &size) : NULL;

    if (json)
        flight->deaths = strndup(json, size);
    bridge_publish(bridge, flight, clock_now());
}

void bridge_on_inquiry(void *userdata, struct flight *flight, struct troupe_query *query)
{
    struct bridge *bridge = userdata;

    if (flight->state == FLIGHT_DEAD) {
        on_deaths(bridge, flight, query);
        return;
    }
    if (flight->state != FLIGHT_HERE || !query)
        return;
    flight->recognised = false; /* it lives: whoever cancels it from now on means it */
    if (is_to_be_given_back(bridge, flight, query)) {
        cancel(bridge, flight);
        return;
    }
    if (bridge->connected)
        engine_acknowledge(&bridge->engine, flight->message, "+WPI");
}

void bridge_serve_held(struct bridge *bridge, usec_t now)
{
    struct list held;

    if (now < bridge->held_at || list_empty(&bridge->flights.held))
        return;
    bridge->held_at = now + HELD_RETRY;
    list_init(&held);
    list_swap(&held, &bridge->flights.held);
    list_for_each_safe (node, &held) {
        struct flight *flight = list_entry(node, struct flight, link);

        if (usec_sub(now, flight->delivered_at) > bridge->flights.period)
            bridge_give_back(bridge, flight, GIVE_BACK_PAUSE);
        else if (bridge->flights.n_here < bridge->limit)
            bridge_submit(bridge, flight, now);
        else
            flight_set_state(&bridge->flights, flight, FLIGHT_HELD);
    }
}
