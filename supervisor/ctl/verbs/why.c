/* SPDX-License-Identifier: MIT */

/* The verb why: what a job, group, cell or worker waits for, in sentences. */

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/status-parts.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show-wait.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static void show_waits(const struct invocation *invocation, const json_t *reply)
{
    const json_t *waits = json_object_get(reply, "waits");
    const char *state = field_text(reply, "state");

    for (size_t i = 0; i < json_array_size(waits); i++)
        show_wait(stdout, json_array_get(waits, i));
    if (json_array_size(waits) > 0)
        return;
    if (*state == '\0')
        terminal_print(&invocation->out, "nothing: it is up");
    else if (strcmp(state, "queued") == 0)
        terminal_print(&invocation->out, "nothing: the job is about to begin");
    else
        terminal_print(&invocation->out, "nothing: the job has ended (%s)", SAFE(state));
}

/* Whether a target waits for nothing. */
static bool is_up(const json_t *reply)
{
    return json_array_size(json_object_get(reply, "waits")) == 0 && !field_has(reply, "state");
}

static void show_said(const struct invocation *invocation, const json_t *group)
{
    const json_t *workers = json_object_get(group, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (field_has(worker, "status"))
            terminal_print(&invocation->out, "%s says: %s", SAFE(field_text(worker, "name")),
                           SAFE(field_text(worker, "status")));
    }
}

/* A service that is up may wait for something that only it knows. */
static int ask_workers(struct invocation *invocation, const char *target)
{
    json_auto_t *status = NULL;
    const json_t *groups;
    int r = parts_of_status(invocation, target, &status);

    groups = json_object_get(status, "groups");
    for (size_t i = 0; i < json_array_size(groups); i++)
        show_said(invocation, json_array_get(groups, i));
    return r;
}

static bool is_error(const struct varlink_reply *reply, const char *error)
{
    return reply->error && strcmp(reply->error, error) == 0;
}

/* A target, or if there is none of that name, a job. */
static int ask_why(struct invocation *invocation, const char *name)
{
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_SUPERVISOR "Explain", json_pack("{s:s}", "target", name),
                     false, &reply);

    if (r == EXIT_OK && is_error(&reply, CALL_SUPERVISOR "NoSuchTarget") && !strchr(name, '/')) {
        varlink_reply_deinit(&reply);
        r = call_any(invocation, CALL_JOBS "Explain", json_pack("{s:s}", "id", name), false,
                     &reply);
    }
    if (r != EXIT_OK)
        return r;
    r = reply.error ? explain_error(reply.error, reply.parameters)
                    : output_reply(invocation, reply.parameters, show_waits);
    if (r == EXIT_OK && !invocation->options.json && is_up(reply.parameters))
        r = ask_workers(invocation, name);
    varlink_reply_deinit(&reply);
    return r;
}

int verb_why(struct invocation *invocation)
{
    return invocation_each(invocation, 0, ask_why);
}
