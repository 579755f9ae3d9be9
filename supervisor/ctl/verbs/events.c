/* SPDX-License-Identifier: MIT */

/* The verbs events, with --follow across restarts of the supervisor, and deaths. */

#include "supervisor/ctl/call/call.h"

#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"

/* The position in a stream of events. */
struct follower {
    const char *target;
    bool jobs;
    bool connected;     /* at least once */
    int64_t pid, since; /* of the supervisor */
    int64_t last;       /* id of the last event seen; 0 = none */
};

static void show_events(const struct invocation *invocation, const json_t *reply)
{
    const json_t *events = json_object_get(reply, "events");

    for (size_t i = 0; i < json_array_size(events); i++)
        show_event(&invocation->out, json_array_get(events, i));
}

static int follow_events(struct invocation *invocation, const json_t *parameters, bool last,
                         void *userdata)
{
    const json_t *events = json_object_get(parameters, "events");
    struct follower *follower = userdata;

    if (json_array_size(events) > 0)
        follower->last = field_int(json_array_get(events, json_array_size(events) - 1), "id");
    if (output_reply(invocation, parameters, show_events) != EXIT_OK || fflush(stdout) != 0)
        return EXIT_FAILED;
    return EXIT_OK;
}

/* Identifies the supervisor, since event ids start again with each. */
static int recognize(struct invocation *invocation, struct reconnect *reconnect,
                     struct follower *follower)
{
    json_auto_t *info = NULL;
    int r = call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);

    if (r != EXIT_OK)
        return r;
    if (field_int(info, "pid") != follower->pid ||
        field_int(info, "started_at") != follower->since) {
        if (follower->connected)
            complain("trouped was started again: pid %lld", (long long)field_int(info, "pid"));
        follower->last = 0;
        reconnect->deadline = 0; /* the message above is enough */
    }
    reconnect_done(reconnect);
    follower->connected = true;
    follower->pid = field_int(info, "pid");
    follower->since = field_int(info, "started_at");
    return EXIT_OK;
}

static int watch_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct follower *follower = userdata;
    int r = recognize(invocation, reconnect, follower);

    if (r != EXIT_OK)
        return r;
    return call_more(invocation, CALL_SUPERVISOR "Watch",
                     json_pack("{s:s*, s:b, s:b, s:o*}", "target", follower->target, "replay", true,
                               "jobs", follower->jobs, "cursor",
                               follower->last > 0 ? json_integer(follower->last) : NULL),
                     true, follow_events, follower);
}

/* Follows until the user ends it or the target does not exist. */
static int follow(struct invocation *invocation)
{
    struct follower follower = {.target = invocation_operand(invocation, 0),
                                .jobs = invocation->options.jobs};

    invocation->lines = true;
    return reconnect_run(invocation, USEC_INFINITY, watch_once, &follower);
}

int verb_events(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    int r;

    if (invocation->options.follow)
        return follow(invocation);
    r = pages_collect(invocation, CALL_SUPERVISOR "Watch",
                      json_pack("{s:s*}", "target", invocation_operand(invocation, 0)), "events", 0,
                      &reply);
    return r == EXIT_OK ? output_reply(invocation, reply, show_events) : r;
}

/* ---- deaths ---- */

/* The default of --limit. */
#define DEATHS_SHOWN 10

static void show_places(const struct invocation *invocation, const json_t *reply)
{
    const json_t *places = json_object_get(reply, "places");

    if (json_array_size(places) == 0 && !invocation->options.quiet)
        terminal_print(&invocation->out, "No deaths.");
    for (size_t i = 0; i < json_array_size(places); i++)
        show_death_place(&invocation->out, json_array_get(places, i), true);
}

static int count_deaths(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    const int r =
        call(invocation, CALL_SUPERVISOR "CountDeaths",
             json_pack("{s:s*}", "target", invocation_operand(invocation, 0)), false, &reply);

    return r == EXIT_OK ? output_reply(invocation, reply, show_places) : r;
}

int verb_deaths(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_SUPERVISOR "ListDeaths",
                                           .array = "deaths",
                                           .none = "No deaths.",
                                           .show = show_death};
    const int64_t limit = invocation->options.limit;

    if (invocation->options.by_place)
        return count_deaths(invocation);
    return listing_run(invocation, &listing,
                       json_pack("{s:s*}", "target", invocation_operand(invocation, 0)),
                       limit > 0 ? limit : DEATHS_SHOWN);
}
