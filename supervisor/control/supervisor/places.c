/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: CountDeaths. */

#include "shared/base/share.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/event/death.h"
#include <stdio.h>

static bool is_wanted(const struct death *death, const void *userdata)
{
    const char *target = request_string(userdata, "target");

    return !target || report_is_below(death->worker, target);
}

static bool is_open(const struct death *death, const void *userdata)
{
    return access_death(userdata, death);
}

static void report_place(struct reply *reply, const struct death_place *place)
{
    const struct death *last = place->last;
    char group[DEATH_WORKER_MAX];

    (void)snprintf(group, sizeof(group), "%.*s", (int)share_owner_size(last->worker), last->worker);
    reply_object(reply, NULL);
    reply_string(reply, "group", group);
    reply_string(reply, "cause", death_cause_to_string(last->cause));
    report_exit(reply, last);
    reply_uint(reply, "count", place->n);
    reply_uint(reply, "first_at", place->first_at);
    reply_uint(reply, "last_at", last->at);
    reply_string(reply, "last_worker", last->worker);
    if (place->open)
        reply_string_if(reply, "top", last->top);
    else
        reply_bool(reply, "restricted", true);
    reply_end_object(reply);
}

static void count_deaths(struct request *request)
{
    const char *target = request_string(request, "target");
    struct death_place places[DEATH_PLACES_MAX];
    struct reply *reply;
    size_t n;

    if (target && !control_find_ever(request, target))
        return;
    n = death_count(request->context->deaths, is_wanted, is_open, request, places);
    reply = request_begin(request);
    reply_array(reply, "places");
    for (size_t i = 0; i < n; i++)
        report_place(reply, &places[i]);
    reply_end_array(reply);
    request_end(request);
}

const struct request_method control_place_methods[] = {
    {"CountDeaths", count_deaths, .changes = false},
    {0},
};
