/* SPDX-License-Identifier: MIT */

/* The verb cancel: cancels jobs by id, or all jobs of a group. */

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static json_t *id_parameters(const char *id)
{
    return json_pack("{s:s}", "id", id);
}

static int cancel_by_id(struct invocation *invocation, const char *id)
{
    return call_print(invocation, CALL_JOBS "Cancel", id_parameters(id), false, NULL);
}

/* Whether the job has ended meanwhile or is already being cancelled. */
static bool is_done_already(const char *error)
{
    static const char *const errors[] = {CALL_JOBS "NoSuchJob", CALL_JOBS "AlreadyEnded",
                                         CALL_JOBS "CancelAlreadyRequested"};

    for (size_t i = 0; i < ELEMENTS(errors); i++)
        if (strcmp(error, errors[i]) == 0)
            return true;
    return false;
}

static int cancel_one_of_many(struct invocation *invocation, const char *id, uint64_t *n)
{
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_JOBS "Cancel", id_parameters(id), false, &reply);

    if (r != EXIT_OK)
        return r;
    if (!reply.error)
        (*n)++;
    else if (!is_done_already(reply.error))
        r = explain_error(reply.error, reply.parameters);
    varlink_reply_deinit(&reply);
    return r;
}

/* Of jobs that are younger than this, none is touched: they came after the call, or are too young
 * for --older-than. */
struct selection {
    usec_t created_until;
    const char *key;   /* NULL = any */
    const char *cause; /* of the last attempt; NULL = any */
    bool dry_run;
};

static bool is_selected(const struct selection *selection, const json_t *job)
{
    const json_t *attempts = json_object_get(job, "attempts");
    const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);

    return field_usec(job, "created_at") <= selection->created_until &&
           (!selection->key || field_is(job, "key", selection->key)) &&
           (!selection->cause || field_is(last, "cause", selection->cause));
}

/* Cancels the selected jobs of a reply of List. */
static int cancel_listed(struct invocation *invocation, const struct selection *selection,
                         const json_t *jobs, uint64_t *n)
{
    int r = EXIT_OK;

    for (size_t i = 0; r == EXIT_OK && i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);

        if (!is_selected(selection, job) || field_true(job, "cancel_requested"))
            continue;
        if (selection->dry_run)
            (*n)++;
        else
            r = cancel_one_of_many(invocation, field_text(job, "id"), n);
    }
    return r;
}

/* Cancels jobs in this state (NULL = all live jobs), a page at a time. */
static int cancel_state(struct invocation *invocation, const struct selection *selection,
                        const char *group, const char *state, uint64_t *n)
{
    json_auto_t *next = NULL;
    int r;

    do {
        json_auto_t *reply = NULL;

        r = call(invocation, CALL_JOBS "List",
                 json_pack("{s:s, s:s*, s:O*}", "group", group, "state", state, "cursor", next),
                 false, &reply);
        if (r == EXIT_OK)
            r = cancel_listed(invocation, selection, json_object_get(reply, "jobs"), n);
        json_decref(next);
        next = field_has(reply, "next") ? json_incref(json_object_get(reply, "next")) : NULL;
    } while (r == EXIT_OK && next);
    return r;
}

static void show_count(const struct invocation *invocation, const json_t *result)
{
    const uint64_t n = field_count(result, "cancelled");

    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %s job%s %scancelled",
                       SAFE(field_text(result, "group")), COUNT(n), plural(n),
                       invocation->options.dry_run ? "would be " : "");
}

/*
 * Cancels waiting jobs first, so that they do not begin when running jobs are cancelled. The last
 * round catches jobs that began meanwhile.
 */
static int cancel_group(struct invocation *invocation, const char *group)
{
    static const char *const states[] = {"queued", "backoff", "delayed", NULL};
    const struct options *options = &invocation->options;
    const struct selection selection = {
        .created_until = usec_sub(clock_realtime(), options->older_than),
        .key = options->of_key,
        .cause = options->cause,
        .dry_run = options->dry_run,
    };
    json_auto_t *result = NULL;
    uint64_t n = 0;
    int r = EXIT_OK;

    if (options->state || options->dry_run)
        r = cancel_state(invocation, &selection, group, options->state, &n);
    else
        for (size_t i = 0; r == EXIT_OK && i < ELEMENTS(states); i++)
            r = cancel_state(invocation, &selection, group, states[i], &n);
    if (r != EXIT_OK && n == 0)
        return r;
    result = json_pack("{s:s, s:I}", "group", group, "cancelled", (json_int_t)n);
    if (!result)
        return call_no_memory();
    return output_reply(invocation, result, show_count) == EXIT_OK ? r : EXIT_FAILED;
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
