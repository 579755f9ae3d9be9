/* SPDX-License-Identifier: MIT */
#include "worker/nats/bridge.h"

#include "shared/base/log.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The longest wait for the server at the end. */
#define END_USEC USEC_PER_SEC

static int attach(struct bridge *bridge)
{
    int r = troupe_client_connect(&bridge->client, NULL);

    if (r < 0) {
        log_error("the supervisor: %s",
                  r == -EPERM ? "only root, its own user and members of AdminGroup= may create jobs"
                              : strerror(-r));
        return r;
    }
    r = troupe_client_group(bridge->client, bridge->config->group, &bridge->group);
    if (r == -ENOENT)
        log_error("group %s: there is no such group", bridge->config->group);
    else if (r == -EOPNOTSUPP)
        log_error("group %s: it is a service, and takes no jobs", bridge->config->group);
    else if (r < 0)
        log_error("group %s: %s", bridge->config->group, strerror(-r));
    return r;
}

int bridge_init(struct bridge *bridge, const struct config *config)
{
    int r;

    *bridge = (struct bridge){.config = config, .limit = config->in_flight};
    service_manager_connect(&bridge->manager);
    flights_init(&bridge->flights);
    inquiry_init(&bridge->inquiry, &bridge->flights, config, bridge_on_inquiry, bridge);
    consumer_init(&bridge->consumer, &bridge->engine, config);
    publisher_init(&bridge->publisher, &bridge->engine, &bridge->flights);
    report_init(&bridge->report, &bridge->engine, config);
    r = engine_init(&bridge->engine, config);
    if (r == 0)
        r = attach(bridge);
    inquiry_ask_other(&bridge->inquiry, QUESTION_JOBS);
    return r;
}

void bridge_deinit(struct bridge *bridge)
{
    flights_deinit(&bridge->flights);
    inquiry_deinit(&bridge->inquiry);
    report_deinit(&bridge->report);
    service_manager_close(&bridge->manager);
    troupe_client_free(bridge->client);
    engine_deinit(&bridge->engine);
}

static uint64_t room(const struct bridge *bridge)
{
    const struct flights *flights = &bridge->flights;
    const unsigned n_done = flights_done(flights);
    const uint64_t n = bridge_n_open(bridge);

    if (!bridge->consumer.there || bridge_takes_nothing(bridge) || n >= bridge->limit ||
        n_done >= bridge->config->in_flight || flights->bytes >= BRIDGE_BYTES_MAX / 2)
        return 0;
    return bridge->limit - n;
}

/* The supervisor keeps ended jobs: without the engine there is nothing to wait for. */
static bool is_done(const struct bridge *bridge)
{
    return bridge->stopping &&
           (bridge->flights.n == flights_done(&bridge->flights) ||
            (!bridge->engine.connected && bridge->flights.counts[FLIGHT_HERE] == 0));
}

/* Returns the number of jobs that have ended and whose results the engine has not stored yet. */
static uint64_t unpublished(const struct bridge *bridge)
{
    uint64_t n = 0;

    for (int state = FLIGHT_DYING; state <= FLIGHT_RESULT_DOUBTED; state++)
        n += bridge->flights.counts[state];
    return n;
}

static const char *status_of(const struct bridge *bridge)
{
    const char *refusal = bridge->engine.seen.refusal;

    if (!bridge->engine.connected)
        return *refusal != '\0' ? refusal : "NATS is away";
    if (!bridge->consumer.there)
        return *bridge->consumer.problem != '\0' ? "Waits for the consumer" : "Connected to NATS";
    if (bridge->down)
        return "Gives messages back, as the group takes no jobs";
    if (bridge->consumer.stall)
        return bridge->consumer.stall;
    if (bridge->publisher.unpublished_at > 0 && unpublished(bridge) > 0)
        return "Takes messages from NATS, but results are not stored, see the log";
    return "Takes messages from NATS";
}

/* Updates the status of the service. */
static void tell_status(struct bridge *bridge)
{
    const bool connected = bridge->engine.connected;
    const char *status = status_of(bridge);
    const uint64_t n = connected ? 0 : unpublished(bridge);
    char text[512], last[ENGINE_SERVER_SIZE + 64] = "", waiting[48] = "";

    if (bridge->stopping || (bridge->told == status && bridge->n_told == n))
        return;
    bridge->told = status;
    bridge->n_told = n;
    if (!connected)
        (void)snprintf(last, sizeof(last), "%s%s, connects again",
                       *bridge->server != '\0' ? ", which was last at " : "", bridge->server);
    if (n > 0)
        (void)snprintf(waiting, sizeof(waiting), "; %" PRIu64 " %s", n,
                       n == 1 ? "result waits" : "results wait");
    (void)snprintf(text, sizeof(text), "%s%s%s; group %s, stream %s", status, last, waiting,
                   bridge->config->group, bridge->config->stream);
    service_manager_status(&bridge->manager, text);
}

/* Takes over what has become known of the consumer. */
static void follow_consumer(struct bridge *bridge, usec_t now)
{
    if (bridge->consumer.is_new)
        bridge_ask_about_all(bridge); /* the server may not have heard of them for long */
    bridge->consumer.is_new = false;
    flights_set_period(&bridge->flights, bridge->consumer.period, now);
}

/* After a pause of this program, discards messages that wait to be read: the server may have given
 * them to other machines. */
static void forget_arrivals(struct bridge *bridge, usec_t now)
{
    const usec_t periods = usec_sub(now, bridge->turned_at) / FLIGHT_SAFE_PERIODS;

    bridge->turned_at = now;
    if (periods <= bridge->flights.period || !bridge->engine.connected || bridge->drained)
        return;
    engine_forget(&bridge->engine);
    consumer_reset_requests(&bridge->consumer);
}

/* Returns when to call it again. */
static usec_t ask_regularly(struct bridge *bridge, usec_t now)
{
    if (now >= bridge->ask_at) {
        inquiry_ask_other(&bridge->inquiry, QUESTION_GROUP);
        bridge->ask_at = now + BRIDGE_ASK_PERIOD;
    }
    if (!bridge->engine.connected)
        return bridge->ask_at;
    if (report_is_due(&bridge->report, now))
        inquiry_ask_other(&bridge->inquiry, QUESTION_GROUPS);
    return usec_min(bridge->ask_at, bridge->report.next_at);
}

/* Ends the bridge once the server has what was sent. Returns when to call it again. */
static usec_t end(struct bridge *bridge, usec_t now)
{
    if (!is_done(bridge))
        return USEC_INFINITY;
    if (bridge->end_at == 0) {
        bridge->end_at = now + END_USEC;
        if (bridge->engine.connected)
            report_stop(&bridge->report);
    }
    if (bridge->report.stopped || !bridge->engine.connected || now >= bridge->end_at)
        bridge->over = true;
    return bridge->end_at;
}

usec_t bridge_process(struct bridge *bridge)
{
    const usec_t now = clock_now();
    usec_t next;
    int r;

    if (bridge->paused_until > 0 && now >= bridge->paused_until)
        bridge->paused_until = 0;
    forget_arrivals(bridge, now);
    bridge_listen(bridge);
    next = bridge_take_messages(bridge, now);
    follow_consumer(bridge, now);
    bridge_take_results(bridge, now);
    next = usec_min(next, ask_regularly(bridge, now));
    next = usec_min(next, bridge_beat(bridge, now));
    next = usec_min(
        next, inquiry_process(&bridge->inquiry, now)); /* after all functions that ask something */
    next = usec_min(next, bridge_serve_held(bridge, now));
    next = usec_min(next, bridge_serve_refusals(bridge, now));
    next = usec_min(next, publisher_serve(&bridge->publisher, now));
    next = usec_min(next, consumer_pull(&bridge->consumer, room(bridge), now));
    next = usec_min(next, consumer_serve(&bridge->consumer, now));
    tell_status(bridge);
    if (!service_manager_send(&bridge->manager))
        next = usec_min(next, now + SERVICE_MANAGER_RETRY);
    if (bridge->paused_until > 0)
        next = usec_min(next, bridge->paused_until);
    publisher_acknowledge(&bridge->publisher);
    next = usec_min(next, end(bridge, now));
    next = usec_min(next, engine_send(&bridge->engine, now));
    message_bin_serve(&bridge->flights.bin, bridge->flights.n == 0);
    /* Last, since it arms the descriptor for what comes from now on. */
    r = troupe_client_process(bridge->client);
    if (r < 0)
        bridge_lose_supervisor(bridge, r);
    return r > 0 ? now : usec_min(next, troupe_client_timeout(bridge->client));
}

void bridge_stop(struct bridge *bridge)
{
    if (bridge->stopping)
        return;
    bridge->stopping = true;
    bridge_listen(bridge);
    service_manager_status(&bridge->manager, "Gives back what has not begun, waits for the rest");
    service_manager_tell(&bridge->manager, SERVICE_STOPPING, 0);
    bridge_give_back_held(bridge);
    bridge_ask_about_all(bridge);
}
