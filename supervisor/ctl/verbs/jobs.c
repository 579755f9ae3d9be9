/* SPDX-License-Identifier: MIT */

/* The verbs jobs, job, cancel, move, set and run-now. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdint.h>
#include <string.h>

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

/* ---- history ---- */

#define PAST_SHOWN 50

static const struct list_column past_columns[] = {
    {"ENDED", "{ended_at:ago}", LIST_LEFT},
    {"JOB", "{id}", LIST_LEFT},
    {"GROUP", "{group}", LIST_LEFT},
    {"STATE", "{state:state}", LIST_LEFT},
    {"TOOK", "{ended_at-created_at:span}", LIST_RIGHT},
    {"KEY", "{key}", LIST_LEFT},
    {"", "[{cause:enum}][, {last_failure:enum}][, on {worker}][: {reason:line}]", LIST_LEFT},
    {0},
};

static json_t *past_parameters(const struct options *options, const char *group)
{
    return json_pack(
        "{s:s*, s:s*, s:s*, s:o*, s:o*, s:s*, s:o*, s:o*}", "group", group, "key", options->of_key,
        "tag", options->of_tag, "state", field_enum_new(options->state), "cause",
        field_enum_new(options->cause), "text", options->text, "since_at",
        options->since_at > 0 ? json_integer((json_int_t)options->since_at) : NULL, "until_at",
        options->until_at > 0 ? json_integer((json_int_t)options->until_at) : NULL);
}

static void show_purged(const struct invocation *invocation, const json_t *reply)
{
    if (!invocation->options.quiet)
        pattern_print(&invocation->out, "{purged:count} removed from the history", reply, 0);
}

static int purge_past(struct invocation *invocation, const char *group)
{
    const struct options *options = &invocation->options;

    if (group && !options->of_key && !options->of_tag && !options->state && !options->cause &&
        !options->text && options->since_at == 0 && options->until_at == 0)
        return call_print(invocation, CALL_JOBS "PurgeHistory", json_pack("{s:s}", "group", group),
                          true, show_purged);
    complain("--purge needs a group, and no filter");
    return EXIT_USAGE;
}

int verb_history(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_JOBS "History",
                                           .array = "jobs",
                                           .none = "No jobs.",
                                           .columns = past_columns};
    const struct options *options = &invocation->options;
    const char *group = invocation_operand(invocation, 0);

    if (options->purge)
        return purge_past(invocation, group);
    return listing_run(invocation, &listing, past_parameters(options, group),
                       options->limit > 0 ? options->limit : PAST_SHOWN);
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
        r = explain_unknown("", invocation_operand(invocation, 0), NULL);
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

/* ---- cancel, move, set, run-now ---- */

static const struct change {
    const char *verb, *method, *done;
    size_t first; /* the first operand that names jobs */
} changes[] = {
    {"cancel", CALL_JOBS "CancelAll", "cancelled", 0},
    {"move", CALL_JOBS "Move", "moved", 1},
    {"set", CALL_JOBS "Set", "changed", 1},
    {"run-now", CALL_JOBS "RunNow", "queued", 0},
};

static const struct change *change_of(const struct invocation *invocation)
{
    const struct change *change = changes;

    while (strcmp(change->verb, invocation->verb->name) != 0)
        change++;
    return change;
}

static bool has_filter(const struct options *options)
{
    return options->dry_run || options->since > 0 || options->older_than > 0 || options->cause ||
           options->state || options->of_key || options->text;
}

static json_t *filter_parameters(const struct options *options, const char *group)
{
    return json_pack("{s:s, s:s*, s:s*, s:o*, s:o*, s:o*, s:o*}", "group", group, "key",
                     options->of_key, "text", options->text, "state",
                     field_enum_new(options->state), "cause", field_enum_new(options->cause),
                     "since_at", field_ago(options->since), "until_at",
                     field_ago(options->older_than));
}

/* Returns the parameters of "priority=N" or "delay=SPAN"; NULL = it is neither. */
static json_t *setting_new(const char *operand)
{
    int64_t priority;
    usec_t delay;

    if (strncmp(operand, "priority=", 9) == 0 && value_number(operand + 9, 0, 63, &priority) == 0)
        return json_pack("{s:I}", "priority", (json_int_t)priority);
    if (strncmp(operand, "delay=", 6) == 0 && value_span(operand + 6, &delay) == 0 && delay > 0)
        return json_pack("{s:I}", "delay_usec", (json_int_t)delay);
    complain("'%s': allowed: priority=0 to priority=63, or delay=SPAN, such as delay=1h", operand);
    return NULL;
}

/* Returns the parameters beside id and filter. NULL = they are malformed, and that was printed. */
static json_t *change_parameters(const struct invocation *invocation)
{
    const char *verb = invocation->verb->name;

    if (strcmp(verb, "set") == 0)
        return setting_new(invocation_operand(invocation, 0));
    return strcmp(verb, "move") == 0 ? json_pack("{s:s}", "to", invocation_operand(invocation, 0))
                                     : json_object();
}

static int change_by_id(struct invocation *invocation, const char *id)
{
    const struct change *change = change_of(invocation);
    json_t *parameters = change_parameters(invocation);

    json_object_set_new(parameters, "id", json_string(id));
    return call_print(invocation, change == changes ? CALL_JOBS "Cancel" : change->method,
                      parameters, false, NULL);
}

static void show_count(const struct invocation *invocation, const json_t *reply)
{
    const uint64_t n = field_count(reply, field_has(reply, "cancelled") ? "cancelled" : "changed");

    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %s job%s %s%s", SAFE(field_text(reply, "group")),
                       COUNT(n), plural(n), invocation->options.dry_run ? "would be " : "",
                       change_of(invocation)->done);
}

static json_t *all_parameters(const struct invocation *invocation, const char *group)
{
    json_t *filter = filter_parameters(&invocation->options, group), *parameters;

    if (change_of(invocation) == changes) {
        parameters = filter;
    } else {
        parameters = change_parameters(invocation);
        json_object_set_new(parameters, "filter", filter);
    }
    if (invocation->options.dry_run)
        json_object_set_new(parameters, "dry_run", json_true());
    return parameters;
}

static int change_group(struct invocation *invocation, const char *group)
{
    const struct change *change = change_of(invocation);
    json_auto_t *reply = NULL;
    json_t *parameters = all_parameters(invocation, group);
    int r = call(invocation, change->method, parameters, true, &reply);

    if (r != EXIT_OK)
        return r;
    if (json_object_set_new(reply, "group", json_string(group)) < 0)
        return call_no_memory();
    r = output_reply(invocation, reply, show_count);
    if (r != EXIT_OK || field_count(reply, "failed") == 0)
        return r;
    complain("%s could not be %s; the last: %s", COUNT(field_count(reply, "failed")), change->done,
             field_text(reply, "problem"));
    return EXIT_FAILED;
}

int verb_change_jobs(struct invocation *invocation)
{
    const bool all = invocation->options.everything;
    json_auto_t *given = change_parameters(invocation);

    if (!given)
        return EXIT_USAGE;
    if (!all && has_filter(&invocation->options)) {
        complain("filters and --dry-run need --all");
        return EXIT_USAGE;
    }
    return invocation_each(invocation, change_of(invocation)->first,
                           all ? change_group : change_by_id);
}
