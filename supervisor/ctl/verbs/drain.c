/* SPDX-License-Identifier: MIT */

/* The verb drain: groups take no new jobs, and work off what they have. And its end, resume. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

static json_t *status_of(struct invocation *invocation, const char *group)
{
    json_t *reply = NULL;

    (void)call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s*}", "target", group), false,
               &reply);
    return reply;
}

static int drain_call(struct invocation *invocation, const char *group, bool wait, json_t **ret)
{
    int r;

    invocation->waits = wait;
    r = call(invocation, CALL_SUPERVISOR "Drain",
             json_pack("{s:s, s:b}", "target", group, "wait", wait), wait, ret);
    invocation->waits = false;
    return r;
}

static void show_drained(const struct invocation *invocation, const json_t *result)
{
    const uint64_t left = field_count(result, "left");

    if (invocation->options.quiet)
        return;
    if (left > 0)
        terminal_print(&invocation->out, "%s: drained; %s job%s wait%s until it is resumed",
                       SAFE(field_text(result, "group")), COUNT(left), plural(left),
                       left == 1 ? "s" : "");
    else
        terminal_print(&invocation->out, "%s: drained", SAFE(field_text(result, "group")));
}

static int tell_drained(const struct invocation *invocation, const char *group, uint64_t left)
{
    json_auto_t *result = json_pack("{s:s, s:I}", "group", group, "left", (json_int_t)left);

    return result ? output_reply(invocation, result, show_drained) : call_no_memory();
}

/* Says what keeps its jobs from ending, besides that it is drained. */
static void tell_obstacles(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL;
    const json_t *waits;

    if (call(invocation, CALL_SUPERVISOR "Explain", json_pack("{s:s}", "target", group), false,
             &reply) != EXIT_OK)
        return;
    waits = json_object_get(reply, "waits");
    for (size_t i = 0; i < json_array_size(waits); i++) {
        if (field_is(json_array_get(waits, i), "cause", "draining"))
            continue;
        fprintf(stderr, "  ");
        show_wait(stderr, json_array_get(waits, i));
    }
}

/* The time is over: tells what the group still has to do. */
static int is_late(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = status_of(invocation, group);
    const json_t *status = json_array_get(json_object_get(reply, "groups"), 0);
    const uint64_t running = field_count(status, "running"), queued = field_count(status, "queued");

    if (!status)
        return EXIT_FAILED;
    if (field_true(status, "drained"))
        return tell_drained(invocation, group, queued + field_count(status, "waiting"));
    complain("%s: still draining: %s running, %s queued; it continues, and takes no new jobs",
             group, COUNT(running), COUNT(queued));
    tell_obstacles(invocation, group);
    return EXIT_TIMEOUT;
}

/* Waits for the end, until `deadline`. */
static int await_drained(struct invocation *invocation, const char *group, usec_t deadline)
{
    const usec_t now = clock_now();
    json_auto_t *reply = NULL;
    int r;

    if (now >= deadline)
        return is_late(invocation, group);
    invocation->options.timeout = deadline == USEC_INFINITY ? 0 : deadline - now;
    r = drain_call(invocation, group, true, &reply);
    invocation->options.timeout = 0;
    if (r == EXIT_TIMEOUT)
        return is_late(invocation, group);
    return r == EXIT_OK ? tell_drained(invocation, group, field_count(reply, "left")) : r;
}

/* The names of the given groups, or of all that take jobs; NULL after an error. */
static json_t *groups_to_drain(struct invocation *invocation)
{
    json_auto_t *reply = invocation->n_operands == 0 ? status_of(invocation, NULL) : NULL;
    const json_t *groups = json_object_get(reply, "groups");
    json_t *names = reply || invocation->n_operands > 0 ? json_array() : NULL;

    for (size_t i = 0; names && i < invocation->n_operands; i++)
        json_array_append_new(names, json_string(invocation->operands[i]));
    for (size_t i = 0; names && i < json_array_size(groups); i++)
        if (field_is(json_array_get(groups, i), "type", "actor"))
            json_array_append(names, json_object_get(json_array_get(groups, i), "name"));
    return names;
}

/* All groups stop taking jobs before the first one is waited for. */
int verb_drain(struct invocation *invocation)
{
    const usec_t timeout = invocation->options.timeout;
    const usec_t deadline = timeout > 0 ? usec_add(clock_now(), timeout) : USEC_INFINITY;
    json_auto_t *names = NULL;
    int r, late;

    invocation->options.timeout = 0; /* it is for the whole */
    names = groups_to_drain(invocation);
    r = names ? EXIT_OK : EXIT_FAILED;
    for (size_t i = 0; r == EXIT_OK && i < json_array_size(names); i++) {
        json_auto_t *reply = NULL;

        r = drain_call(invocation, json_string_value(json_array_get(names, i)), false, &reply);
    }
    late = r;
    invocation->lines = json_array_size(names) > 1;
    for (size_t i = 0; (r == EXIT_OK || r == EXIT_TIMEOUT) && i < json_array_size(names); i++) {
        r = await_drained(invocation, json_string_value(json_array_get(names, i)), deadline);
        late = r != EXIT_OK ? r : late;
    }
    return late;
}

/* ---- the end of it ---- */

static void show_resumed(const struct invocation *invocation, const json_t *result)
{
    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: resumed", SAFE(field_text(result, "group")));
}

static int resume_group(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL, *result = json_pack("{s:s}", "group", group);
    int r = call(invocation, CALL_SUPERVISOR "Resume", json_pack("{s:s}", "target", group), false,
                 &reply);

    if (r != EXIT_OK)
        return r;
    return result ? output_reply(invocation, result, show_resumed) : call_no_memory();
}

/* Groups that a reload has removed also drain, but not on request. */
static int resume_drained(struct invocation *invocation)
{
    json_auto_t *reply = status_of(invocation, NULL);
    const json_t *groups = json_object_get(reply, "groups");
    int r = reply ? EXIT_OK : EXIT_FAILED;

    invocation->lines = true;
    for (size_t i = 0; r == EXIT_OK && i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i);

        if (field_has(group, "drained"))
            r = resume_group(invocation, field_text(group, "name"));
    }
    return r;
}

int verb_resume(struct invocation *invocation)
{
    if (invocation->n_operands > 0)
        return verb_switch(invocation);
    if (!invocation->options.actor)
        return resume_drained(invocation);
    complain("--actor needs the name of an actor");
    return EXIT_USAGE;
}
