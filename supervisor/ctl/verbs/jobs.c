/* SPDX-License-Identifier: MIT */

/* The verbs jobs, job and cancel. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdint.h>

/* ---- jobs ---- */

/* The default of --limit, but for --json. */
#define JOBS_SHOWN 1000

int verb_jobs(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_JOBS "List",
                                           .array = "jobs",
                                           .none = "No jobs.",
                                           .columns = show_job_columns};
    const struct options *options = &invocation->options;

    return listing_run(invocation, &listing,
                       json_pack("{s:s*, s:s*, s:b}", "group", invocation_operand(invocation, 0),
                                 "state", options->state, "ended", options->ended),
                       options->limit > 0 || options->json ? options->limit : JOBS_SHOWN);
}

/* ---- job ---- */

/* Live and successful jobs give EXIT_OK. */
static int job_exit_status(const json_t *job)
{
    return field_is(job, "state", "rejected") || field_is(job, "state", "dead") ||
                   field_is(job, "state", "cancelled")
               ? EXIT_FAILED
               : EXIT_OK;
}

static void show_reply(const struct invocation *invocation, const json_t *reply)
{
    show_job(&invocation->out, json_object_get(reply, "job"), clock_realtime());
}

static void show_change(const struct invocation *invocation, const json_t *reply)
{
    show_job_state(&invocation->out, json_object_get(reply, "job"), clock_realtime());
}

struct job_follower {
    struct reconnect *reconnect;
    json_t *last; /* owned: what was shown last; NULL = nothing yet */
};

static int follow_job(struct invocation *invocation, const json_t *parameters, bool last,
                      void *userdata)
{
    struct job_follower *follower = userdata;
    /* A new connection begins with the present state, which is often known already. */
    const bool known = follower->last && json_equal(follower->last, parameters);
    int r = known ? EXIT_OK : output_reply(invocation, parameters, show_change);

    reconnect_done(follower->reconnect);
    json_decref(follower->last);
    follower->last = json_incref((json_t *)(uintptr_t)parameters);
    if (last && !invocation->options.json)
        show_reply(invocation, parameters);
    if (r != EXIT_OK || fflush(stdout) != 0)
        return EXIT_FAILED;
    return last ? job_exit_status(json_object_get(parameters, "job")) : EXIT_OK;
}

static int follow_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct job_follower *follower = userdata;

    follower->reconnect = reconnect;
    return call_more(invocation, CALL_JOBS "Get",
                     json_pack("{s:s}", "id", invocation_operand(invocation, 0)), true, follow_job,
                     follower);
}

static int follow(struct invocation *invocation)
{
    struct job_follower follower = {0};
    int r;

    invocation->lines = true;
    r = reconnect_run(invocation, USEC_INFINITY, follow_once, &follower);
    /* It was there once. */
    if (r == EXIT_NOT_FOUND && follower.last)
        r = explain_unknown("", invocation_operand(invocation, 0));
    json_decref(follower.last);
    return r;
}

int verb_job(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    int r;

    if (invocation->options.follow)
        return follow(invocation);
    r = call(invocation, CALL_JOBS "Get",
             json_pack("{s:s}", "id", invocation_operand(invocation, 0)), false, &reply);
    if (r == EXIT_OK)
        r = output_reply(invocation, reply, show_reply);
    return r == EXIT_OK ? job_exit_status(json_object_get(reply, "job")) : r;
}

/* ---- cancel ---- */

static int cancel_by_id(struct invocation *invocation, const char *id)
{
    return call_print(invocation, CALL_JOBS "Cancel", json_pack("{s:s}", "id", id), false, NULL);
}

static json_t *filter_parameters(const struct options *options, const char *group)
{
    return json_pack("{s:s, s:s*, s:o*, s:o*, s:o*, s:b}", "group", group, "key", options->of_key,
                     "state", field_enum_new(options->state), "cause",
                     field_enum_new(options->cause), "until_at", field_ago(options->older_than),
                     "dry_run", options->dry_run);
}

static void show_count(const struct invocation *invocation, const json_t *reply)
{
    const uint64_t n = field_count(reply, "cancelled");

    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %s job%s %scancelled",
                       SAFE(field_text(reply, "group")), COUNT(n), plural(n),
                       invocation->options.dry_run ? "would be " : "");
}

static int cancel_group(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_JOBS "CancelAll", filter_parameters(&invocation->options, group),
                 true, &reply);

    if (r != EXIT_OK)
        return r;
    if (json_object_set_new(reply, "group", json_string(group)) < 0)
        return call_no_memory();
    r = output_reply(invocation, reply, show_count);
    if (r != EXIT_OK || field_count(reply, "failed") == 0)
        return r;
    complain("%s could not be cancelled; the last: %s", COUNT(field_count(reply, "failed")),
             field_text(reply, "problem"));
    return EXIT_FAILED;
}

int verb_cancel(struct invocation *invocation)
{
    const struct options *options = &invocation->options;

    if (!options->everything && (options->dry_run || options->older_than > 0 || options->cause ||
                                 options->state || options->of_key)) {
        complain("filters and --dry-run need --all");
        return EXIT_USAGE;
    }
    return invocation_each(invocation, 0, options->everything ? cancel_group : cancel_by_id);
}
