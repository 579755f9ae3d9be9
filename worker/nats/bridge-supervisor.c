/* SPDX-License-Identifier: MIT */

/* The supervisor's side of the bridge: jobs. */

#include "shared/base/log.h"
#include "worker/nats/bridge.h"
#include "worker/nats/message.h"
#include <errno.h>
#include <string.h>

/* The pause before held messages are submitted again, unless a job ends before. */
#define HELD_RETRY USEC_PER_SEC

/* A job that is due later than this waits on the server, and takes up no room here. */
#define DELAY_MAX USEC_PER_SEC

/* For a message that comes again, jobs of at most so many earlier tries are looked for. */
#define TRIES_SOUGHT 4u

enum {
    _SUBMIT_E_SUCCESS,
    SUBMIT_E_BAD,  /* it can never be a job */
    SUBMIT_E_OVER, /* the flight is over */
};

/* The number of refusals that are logged in a second; the others are counted. */
#define REFUSALS_LOGGED 5u

static void hold(struct bridge *bridge, struct flight *flight, usec_t now)
{
    flight_set_state(&bridge->flights, flight, FLIGHT_HELD);
    bridge->held_at = now + HELD_RETRY;
}

usec_t bridge_serve_refusals(struct bridge *bridge, usec_t now)
{
    struct rate *rate = &bridge->refusals;

    if (rate->left_out == 0)
        return USEC_INFINITY;
    if (now < rate->since + USEC_PER_SEC)
        return rate->since + USEC_PER_SEC;
    log_warning("%u more messages of stream %s can never be jobs; their dead letters say why",
                rate->left_out, bridge->config->stream);
    rate->left_out = 0;
    return USEC_INFINITY;
}

/* Turns a message that can never be a job into a dead letter. Copies `problem`. */
static void refuse(struct bridge *bridge, struct flight *flight, const char *problem, usec_t now)
{
    (void)bridge_serve_refusals(bridge, now);
    if (rate_take(&bridge->refusals, now, REFUSALS_LOGGED, NULL))
        log_warning("message %llu of stream %s: %s", (unsigned long long)flight_sequence(flight),
                    bridge->config->stream, problem);
    flight->problem = strdup(problem);
    if (!flight->problem) {
        hold(bridge, flight, now);
        return;
    }
    publisher_publish(&bridge->publisher, flight, FLIGHT_LETTER, now);
}

/* Returns what troupe_client_submit() does, or SUBMIT_E_*. */
static int submit(struct bridge *bridge, struct flight *flight, const char **ret_problem)
{
    const usec_t now = clock_realtime();
    struct troupe_job_options options;
    char id[TROUPE_ID_SIZE];
    const char *problem;

    if (flight->kind == FLIGHT_STAND_IN) { /* only the message itself says what to do */
        bridge_give_back(bridge, flight);
        return SUBMIT_E_OVER;
    }
    problem = flight->kind == FLIGHT_MALFORMED ? "the headers are malformed"
                                               : message_options(flight->message, &options);
    if (problem) {
        *ret_problem = problem;
        return SUBMIT_E_BAD;
    }
    options.delay_usec = message_due(flight->message, options.delay_usec, now) - now;
    if (options.delay_usec > DELAY_MAX) {
        bridge_put_off(bridge, flight, options.delay_usec);
        return SUBMIT_E_OVER;
    }
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
    int r = flight->claim == FLIGHT_SUBMITTED ? submit(bridge, flight, &problem)
                                              : wait_for_end(bridge, flight);

    if (r == SUBMIT_E_OVER)
        return;
    if (r == 0)
        flight_set_state(&bridge->flights, flight, FLIGHT_HERE);
    else if (r == SUBMIT_E_BAD || r == -EINVAL || r == -EMSGSIZE)
        refuse(bridge, flight, problem, now);
    else
        hold(bridge, flight, now); /* the ring is full, or memory is short; -EPIPE shows later */
}

/* A job that was given back and comes again has another id, because its first id still has a
 * result. That result may expire while the second job is running, so all ids are looked for. */
void bridge_begin(struct bridge *bridge, struct flight *flight, usec_t now)
{
    const uint64_t n = message_deliveries(flight->message) - 1;

    flight->tries = (unsigned)(n < TRIES_SOUGHT ? n : TRIES_SOUGHT);
    flight->claim = flight->tries > 0 ? FLIGHT_SOUGHT : FLIGHT_SUBMITTED;
    if (bridge->flights.counts[FLIGHT_HERE] < bridge->limit)
        bridge_submit(bridge, flight, now);
}

/* The supervisor currently refuses all jobs. */
static void give_up(struct bridge *bridge, struct flight *flight,
                    const struct troupe_result *result)
{
    bridge_set_down(bridge, true,
                    *result->reason != '\0' ? result->reason : strerror(-result->error));
    bridge_give_back(bridge, flight);
}

void bridge_ask_about_all(struct bridge *bridge)
{
    list_for_each_entry (flight, &bridge->flights.lists[FLIGHT_HERE], struct flight, link)
        inquiry_ask(&bridge->inquiry, flight);
}

void bridge_give_back_held(struct bridge *bridge)
{
    list_for_each_entry_safe (flight, &bridge->flights.lists[FLIGHT_HELD], struct flight, link)
        bridge_give_back(bridge, flight);
}

void bridge_set_down(struct bridge *bridge, bool down, const char *cause)
{
    if (bridge->down == down)
        return;
    bridge->down = down;
    bridge->ask_at = clock_now() + BRIDGE_ASK_PERIOD;
    if (bridge->stopping)
        return;
    bridge_listen(bridge);
    if (!down) {
        if (bridge->n_refused <= 1)
            log_info("group %s: messages are taken again", bridge->config->group);
    } else {
        if (bridge->n_refused++ == 0)
            log_warning("group %s takes no jobs: %s; messages are given back",
                        bridge->config->group, cause);
        bridge_give_back_held(bridge);
        bridge_ask_about_all(bridge);
    }
}

/* The group has no room for the job. With Cells=by-key, only the cell of its key has no room, or
 * there is no cell for it, so messages with other keys must not wait. */
static void on_full(struct bridge *bridge, struct flight *flight, usec_t now)
{
    if (bridge->stopping || bridge->down) {
        bridge_give_back(bridge, flight);
        return;
    }
    if (bridge->report.keyed) {
        bridge_give_back_full(bridge, flight, now);
        return;
    }
    hold(bridge, flight, now);
    bridge->limit =
        bridge->flights.counts[FLIGHT_HERE] > 0 ? bridge->flights.counts[FLIGHT_HERE] : 1;
}

/* The supervisor does not know the job, or no longer. */
static void on_unknown(struct bridge *bridge, struct flight *flight, usec_t now)
{
    if (bridge->stopping) {
        bridge_give_back(bridge, flight);
        return;
    }
    if (flight->claim != FLIGHT_SOUGHT || --flight->tries == 0)
        flight->claim = FLIGHT_SUBMITTED;
    bridge_submit(bridge, flight, now);
}

static void on_refused(struct bridge *bridge, struct flight *flight,
                       const struct troupe_result *result, usec_t now)
{
    switch (-result->error) {
    case EEXIST: /* an earlier delivery has brought it here */
        flight->claim = FLIGHT_RECOGNISED;
        bridge_submit(bridge, flight, now);
        return;
    case ECONNRESET: /* the supervisor was replaced: does the new one have the job? */
        if (flight->claim == FLIGHT_SUBMITTED)
            flight->claim = FLIGHT_RESUMED;
        bridge_submit(bridge, flight, now);
        return;
    case ESRCH:
        on_unknown(bridge, flight, now);
        return;
    case EIO: /* the store has failed; it also refuses a submission if the job may be in it */
        if (flight->claim != FLIGHT_SUBMITTED)
            on_unknown(bridge, flight, now);
        else
            give_up(bridge, flight, result);
        return;
    case EBUSY:
    case ENOSPC:
    case ENOMEM:
        on_full(bridge, flight, now);
        return;
    case EINVAL:
    case EMSGSIZE:
        refuse(bridge, flight, result->reason, now);
        return;
    case ESHUTDOWN: /* if the job is on disk, the next supervisor will recognise it */
        flight->left = true;
        bridge_set_down(bridge, true, result->reason);
        inquiry_ask(&bridge->inquiry, flight);
        return;
    default:
        give_up(bridge, flight, result);
    }
}

/* Submits the message under another id, since the supervisor has a result for this one. */
static void submit_under_new_id(struct bridge *bridge, struct flight *flight, usec_t now)
{
    troupe_result_release(&flight->result);
    flight->claim = FLIGHT_SUBMITTED;
    flight->tries++;
    bridge_submit(bridge, flight, now);
}

/* A job that was cancelled on request has ended. One that was withdrawn, or whose group is gone,
 * has not: another machine can do it. */
static void on_cancelled(struct bridge *bridge, struct flight *flight, usec_t now)
{
    const bool withdrawn = flight->result.cause == TROUPE_CAUSE_WITHDRAWN;

    if (withdrawn && flight->claim == FLIGHT_RECOGNISED) {
        submit_under_new_id(bridge, flight, now); /* it was withdrawn for an earlier delivery */
    } else if (withdrawn || flight->result.cause == TROUPE_CAUSE_GROUP) {
        bridge_give_back(bridge, flight);
    } else {
        publisher_publish(&bridge->publisher, flight, FLIGHT_RESULT, now);
    }
}

static void on_ended(struct bridge *bridge, struct flight *flight, usec_t now)
{
    bridge->held_at = 0;
    if (flight->claim == FLIGHT_SOUGHT)
        flight->claim = FLIGHT_RECOGNISED;
    if (bridge->limit < bridge->config->in_flight)
        bridge->limit++;
    if (flight->result.end == TROUPE_CANCELLED && flight->result.cause != TROUPE_CAUSE_DEADLINE) {
        on_cancelled(bridge, flight, now);
        return;
    }
    bridge->n_refused = 0;
    bridge->paused_until = 0;
    if (flight->result.cause == TROUPE_CAUSE_PAYLOAD_LOST) {
        submit_under_new_id(bridge, flight, now);
        return;
    }
    if (flight->result.end == TROUPE_DEAD &&
        flight->kind ==
            FLIGHT_STAND_IN) { /* only the message itself has the payload for the letter */
        bridge_give_back(bridge, flight);
        return;
    }
    if (flight->result.end == TROUPE_DEAD) {
        flight_set_state(&bridge->flights, flight, FLIGHT_DYING);
        flight->sent_at = now;
        inquiry_ask(&bridge->inquiry, flight);
        return;
    }
    publisher_publish(&bridge->publisher, flight, FLIGHT_RESULT, now);
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

usec_t bridge_serve_held(struct bridge *bridge, usec_t now)
{
    struct list held;

    if (list_empty(&bridge->flights.lists[FLIGHT_HELD]))
        return USEC_INFINITY;
    if (now < bridge->held_at)
        return bridge->held_at;
    bridge->held_at = now + HELD_RETRY;
    list_init(&held);
    list_swap(&held, &bridge->flights.lists[FLIGHT_HELD]);
    list_for_each_entry_safe (flight, &held, struct flight, link)
        if (usec_sub(now, flight->delivered_at) > bridge->flights.period) {
            bridge_pause(bridge, now);
            bridge_give_back(bridge, flight);
        } else if (bridge->flights.counts[FLIGHT_HERE] < bridge->limit)
            bridge_submit(bridge, flight, now);
        else
            flight_set_state(&bridge->flights, flight, FLIGHT_HELD);
    return list_empty(&bridge->flights.lists[FLIGHT_HELD]) ? USEC_INFINITY : bridge->held_at;
}
