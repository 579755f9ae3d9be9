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
#include "supervisor/ctl/verbs/verbs.h"
#include <stdint.h>
#include <stdlib.h>

/* The order of jobs: by state, and within a state by these members. The last is for ended jobs. */
static const struct order {
    const char *state;
    const char *members[2];
} orders[] = {
    {"running", {"started_at"}},
    {"backoff", {"next_attempt_at"}},
    {"delayed", {"next_attempt_at"}},
    {"queued", {"priority", "created_at"}},
    {NULL, {"ended_at"}},
};

static const struct order *order_of(const json_t *job)
{
    const struct order *order = orders;

    while (order->state && !field_is(job, "state", order->state))
        order++;
    return order;
}

static int compare_jobs(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
    const struct order *order = order_of(x);
    int r = (int)(order - order_of(y));

    for (size_t i = 0; r == 0 && i < 2 && order->members[i]; i++) {
        int64_t of_x = field_int(x, order->members[i]), of_y = field_int(y, order->members[i]);

        r = (of_x > of_y) - (of_x < of_y);
    }
    return r;
}

/* The first jobs of a list of any length. */
struct best {
    size_t limit; /* 0 = all */
    uint64_t n;   /* of all jobs so far */
    size_t n_kept;
    bool whole; /* keep also members that only --json shows */
};

static void sort_jobs(json_t *jobs)
{
    size_t n = json_array_size(jobs);
    const json_t **sorted = calloc(n + 1, sizeof(*sorted));

    if (!sorted)
        return;
    for (size_t i = 0; i < n; i++)
        sorted[i] = json_incref(json_array_get(jobs, i));
    qsort(sorted, n, sizeof(*sorted), compare_jobs);
    json_array_clear(jobs);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(jobs, (json_t *)(uintptr_t)sorted[i]);
    free(sorted);
}

/* Drops all other jobs after each page, to bound memory. */
static void keep_best(json_t *jobs, void *userdata)
{
    static const char *const heavy[] = {"result", "published", "attempts"};
    struct best *best = userdata;
    size_t n = json_array_size(jobs);

    best->n += n - best->n_kept;
    for (size_t i = best->n_kept; !best->whole && i < n; i++)
        for (size_t k = 0; k < ELEMENTS(heavy); k++)
            json_object_del(json_array_get(jobs, i), heavy[k]);
    if (best->limit > 0) {
        sort_jobs(jobs);
        while (json_array_size(jobs) > best->limit)
            json_array_remove(jobs, json_array_size(jobs) - 1);
    }
    best->n_kept = json_array_size(jobs);
}

static void print_jobs(const struct invocation *invocation, const json_t *reply, uint64_t n)
{
    const struct options *options = &invocation->options;
    const json_t *jobs = json_object_get(reply, "jobs");
    const size_t shown = json_array_size(jobs);

    if (field_has(reply, "store_problem"))
        complain("durable jobs on disk are not shown: %s", field_text(reply, "store_problem"));
    if (shown > 0)
        show_jobs(&invocation->out, jobs, clock_realtime());
    else if (field_has(reply, "store_problem"))
        return;
    else if (!options->quiet && options->state)
        terminal_print(&invocation->out, "No jobs in state %s.", options->state);
    else if (!options->quiet)
        terminal_print(&invocation->out, "No %sjobs.", options->ended ? "" : "live ");
    if (n > shown && !options->quiet)
        terminal_print(&invocation->out, DIM "%s of %s jobs; --limit N shows more" PLAIN,
                       COUNT(shown), COUNT(n));
}

int verb_jobs(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    struct best best = {.limit = (size_t)options->limit, .whole = options->json};
    json_auto_t *reply = NULL;
    json_t *jobs;
    int r;

    /* Read all pages even with a limit: the first jobs in this order may be on any page. */
    r = pages_collect(invocation, CALL_JOBS "List",
                      json_pack("{s:s*, s:s*, s:b}", "group", invocation_operand(invocation, 0),
                                "state", options->state, "ended", options->ended),
                      "jobs", 0, keep_best, &best, &reply);
    if (r != EXIT_OK)
        return r;
    jobs = json_object_get(reply, "jobs");
    sort_jobs(jobs);
    if (options->json)
        return output_json(invocation, reply);
    print_jobs(invocation, reply, best.n);
    return EXIT_OK;
}

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
