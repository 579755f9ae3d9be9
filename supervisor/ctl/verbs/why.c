/* SPDX-License-Identifier: MIT */

/* The verbs why: what a job, group, cell or worker waits for, in sentences; and stack: where it is.
 */

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static void show_waits(const struct invocation *invocation, const json_t *reply)
{
    const json_t *waits = json_object_get(reply, "waits");
    const char *state = field_text(reply, "state");

    for (size_t i = 0; i < json_array_size(waits); i++) {
        _cleanup_free_ char *sentence = show_wait(json_array_get(waits, i));

        puts(sentence ? sentence : "");
    }
    if (json_array_size(waits) > 0)
        return;
    if (strcmp(state, "queued") == 0)
        terminal_print(&invocation->out, "nothing: the job is about to begin");
}

/* Shows how a job has ended. */
static int show_end(struct invocation *invocation, const char *id)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_JOBS "Get", json_pack("{s:s}", "id", id), false, &reply);

    if (r == EXIT_OK)
        show_job_end(&invocation->out, json_object_get(reply, "job"), clock_realtime());
    return r;
}

static bool has_ended(const json_t *reply)
{
    return json_array_size(json_object_get(reply, "waits")) == 0 && field_has(reply, "state") &&
           !field_is(reply, "state", "queued");
}

/* The last ones are enough: `deaths --by-place` shows all. */
#define PLACES_SHOWN 3

/* Shows of what workers of the group have died. */
static int show_deaths(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL;
    const json_t *places;
    int r = call(invocation, CALL_SUPERVISOR "CountDeaths", json_pack("{s:s}", "target", group),
                 false, &reply);

    places = json_object_get(reply, "places");
    for (size_t i = 0; i < json_array_size(places) && i < PLACES_SHOWN; i++) {
        const json_t *place = json_array_get(places, i);
        if (field_has(place, "top"))
            show_death_place(&invocation->out, place, false);
    }
    return r;
}

static void show_said(const struct invocation *invocation, const json_t *group)
{
    const json_t *workers = json_object_get(group, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++)
        pattern_print(&invocation->out, "[{name} says: {status}]", json_array_get(workers, i), 0);
}

/* Shows trouble of a target, and, if it waits for nothing, what its services report: a service may
 * wait for something that only it knows. */
static int ask_workers(struct invocation *invocation, const char *target, bool waits)
{
    json_auto_t *status = NULL;
    const json_t *groups;
    int r = parts_of_status(invocation, target, false, &status);

    groups = json_object_get(status, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);

        if (!strchr(target, '/'))
            show_trouble(&invocation->out, group, clock_realtime(), waits);
        else if (!show_held_cell(&invocation->out, group, target, clock_realtime()) && !waits)
            terminal_print(&invocation->out, "nothing: it is up");
        if (!waits)
            show_said(invocation, group);
    }
    return r == EXIT_OK && !strchr(target, '/') ? show_deaths(invocation, target) : r;
}

/* A target, or if there is none of that name, a job. */
static int ask_why(struct invocation *invocation, const char *name)
{
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_SUPERVISOR "Explain", json_pack("{s:s}", "target", name),
                     false, &reply);

    if (r == EXIT_OK && varlink_reply_is(&reply, CALL_SUPERVISOR "NoSuchTarget") &&
        !strchr(name, '/')) {
        varlink_reply_deinit(&reply);
        r = call_any(invocation, CALL_JOBS "Explain", json_pack("{s:s}", "id", name), false,
                     &reply);
    }
    if (r != EXIT_OK)
        return r;
    r = reply.error ? explain_error(reply.error, reply.parameters)
                    : output_reply(invocation, reply.parameters, show_waits);
    if (r == EXIT_OK && !invocation->options.json && !field_has(reply.parameters, "state"))
        r = ask_workers(invocation, name,
                        json_array_size(json_object_get(reply.parameters, "waits")) > 0);
    if (r == EXIT_OK && !invocation->options.json && has_ended(reply.parameters))
        r = show_end(invocation, name);
    varlink_reply_deinit(&reply);
    return r;
}

/* ---- stack ---- */

static void show_threads(const struct invocation *invocation, const json_t *reply)
{
    show_stack(&invocation->out, reply, clock_realtime());
}

/* A worker, or if there is none of that name, a job. */
static int ask_stack(struct invocation *invocation, const char *name)
{
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_SUPERVISOR "GetStack", json_pack("{s:s}", "target", name),
                     false, &reply);

    if (r == EXIT_OK && varlink_reply_is(&reply, CALL_SUPERVISOR "NoSuchTarget") &&
        !strchr(name, '/')) {
        varlink_reply_deinit(&reply);
        r = call_any(invocation, CALL_SUPERVISOR "GetStack", json_pack("{s:s}", "job", name), false,
                     &reply);
    }
    if (r != EXIT_OK)
        return r;
    r = reply.error ? explain_error(reply.error, reply.parameters)
                    : output_reply(invocation, reply.parameters, show_threads);
    varlink_reply_deinit(&reply);
    return r;
}

int verb_stack(struct invocation *invocation)
{
    return invocation_each(invocation, 0, ask_stack);
}

int verb_why(struct invocation *invocation)
{
    return invocation_each(invocation, 0, ask_why);
}
