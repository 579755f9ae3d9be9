/* SPDX-License-Identifier: MIT */

/* The verb cancel: cancels jobs by id, or all jobs of a group. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/varlink-client.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static json_t *id_parameters(const char *id)
{
    return json_pack("{s:s}", "id", id);
}

static int cancel_by_id(struct invocation *invocation)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < invocation->n_operands; i++) {
        json_t *reply;
        int r;

        r = call(invocation, CALL_JOBS "Cancel", id_parameters(invocation->operands[i]), false,
                 &reply);
        if (r == EXIT_UNREACHABLE)
            return r;
        if (r != EXIT_OK) {
            status = r;
            continue;
        }
        if (invocation->options.json)
            call_print_json_line(reply);
        json_decref(reply);
    }
    return status;
}

/* Jobs that have ended meanwhile or are already being cancelled are no errors. */
static bool is_done_already(const char *error)
{
    static const char *const errors[] = {"NoSuchJob", "AlreadyEnded", "CancelAlreadyRequested"};

    for (size_t i = 0; i < ELEMENTS(errors); i++)
        if (strcmp(error, errors[i]) == 0)
            return true;
    return false;
}

static int cancel_one_of_many(struct invocation *invocation, const char *id, uint64_t *n)
{
    struct varlink_reply reply;
    int r;

    r = call_any(invocation, CALL_JOBS "Cancel", id_parameters(id), &reply);
    if (r != EXIT_OK)
        return r;
    if (!reply.error)
        (*n)++;
    else if (!is_done_already(strrchr(reply.error, '.') + 1))
        r = explain_error(reply.error, reply.parameters);
    varlink_reply_deinit(&reply);
    return r;
}

/* Cancels jobs in this state (NULL = all live jobs), a page at a time. */
static int cancel_state(struct invocation *invocation, const char *group, const char *state,
                        uint64_t *n)
{
    json_t *parameters = json_pack("{s:s, s:s*}", "group", group, "state", state);
    json_t *next = NULL, *reply;
    int r = parameters ? EXIT_OK : call_no_memory();

    do {
        const json_t *jobs;

        if (next)
            json_object_set(parameters, "cursor", next);
        json_decref(next);
        next = NULL;
        if (r == EXIT_OK)
            r = call(invocation, CALL_JOBS "List", json_incref(parameters), false, &reply);
        if (r != EXIT_OK)
            break;
        jobs = json_object_get(reply, "jobs");
        for (size_t i = 0; r == EXIT_OK && i < json_array_size(jobs); i++)
            r = cancel_one_of_many(invocation, field_text(json_array_get(jobs, i), "id"), n);
        next = json_incref(json_object_get(reply, "next"));
        json_decref(reply);
    } while (r == EXIT_OK && next);
    json_decref(next);
    json_decref(parameters);
    return r;
}

static int print_count(const char *group, uint64_t n)
{
    json_t *document = json_pack("{s:s, s:I}", "group", group, "cancelled", (json_int_t)n);
    int r = document ? call_print_json_line(document) : call_no_memory();

    json_decref(document);
    return r;
}

/*
 * Cancels waiting jobs first, so that they do not begin when running jobs are cancelled. The last
 * round catches jobs that began meanwhile.
 */
static int cancel_group(struct invocation *invocation, const char *group)
{
    static const char *const states[] = {"queued", "backoff", "delayed", NULL};
    uint64_t n = 0;
    int r = EXIT_OK;

    for (size_t i = 0; r == EXIT_OK && i < ELEMENTS(states); i++)
        r = cancel_state(invocation, group, states[i], &n);
    if (r == EXIT_OK && invocation->options.json)
        r = print_count(group, n);
    else if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %s job%s cancelled", SAFE(group), COUNT(n),
                       plural(n));
    return r;
}

int verb_cancel(struct invocation *invocation)
{
    int status = EXIT_OK;

    if (!invocation->options.everything)
        return cancel_by_id(invocation);
    for (size_t i = 0; i < invocation->n_operands; i++) {
        int r = cancel_group(invocation, invocation->operands[i]);

        if (r == EXIT_UNREACHABLE)
            return r;
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}
