/* SPDX-License-Identifier: MIT */

/* The verb create. Small payloads go over the socket, others over the rings. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/attach.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static json_t *options_json(const struct options *options)
{
    const struct troupe_job_options *job = &options->job;

    return json_pack(
        "{s:s*, s:s*, s:o*, s:o*, s:o*, s:s*, s:s*, s:s*, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, "
        "s:o*, "
        "s:o*, "
        "s:o*, s:o*, s:s*, s:s*, s:s*}",
        "traceparent", job->traceparent, "tags", job->tags, "cost",
        options->cost > 0 ? json_integer(options->cost) : NULL, "debounce_usec",
        field_given(job->debounce_usec), "debounce_max_usec", field_given(job->debounce_max_usec),
        "id", job->id, "key", (const char *)job->key, "unique", (const char *)job->unique,
        "on_conflict", options->on_conflict, "max_retries",
        job->max_retries >= 0 ? json_integer(job->max_retries) : NULL, "priority",
        options->priority >= 0 ? json_integer(options->priority) : NULL, "timeout_usec",
        field_given(job->timeout_usec), "backoff_min_usec", field_given(job->backoff_min_usec),
        "backoff_max_usec", field_given(job->backoff_max_usec), "delay_usec",
        field_given(job->delay_usec), "at", field_given(job->at_usec), "wait_usec",
        field_given(job->wait_usec), "deadline_usec", field_given(job->deadline_usec), "after",
        job->after, "condition", options->condition, "batch", job->batch);
}

/* For Create over the socket. */
static json_t *job_parameters(const struct invocation *invocation, const char *data, size_t size)
{
    return json_pack("{s:s, s:o, s:o}", "group", invocation_operand(invocation, 0), "payload",
                     field_payload_new(data, size), "options", options_json(&invocation->options));
}

/* The supervisor accepts requests of 64 KiB from submitters; JSON may need 8 bytes for one. */
#define CALL_PAYLOAD_MAX ((size_t)8 << 10)

/* Makes up an id unless one is given, so that the job can be found and cancelled. */
static void give_id(struct invocation *invocation, char id[TROUPE_ID_SIZE])
{
    const struct attach_ids ids = attach_ids_make();

    if (!invocation->options.job.id)
        invocation->options.job.id = attach_ids_format(&ids, 0, id);
}

int submit_attached(struct invocation *invocation, struct attachment_client *attached,
                    struct reconnect *reconnect, const char *data, size_t size, char *id)
{
    struct troupe_job_options options = attach_job_options(&invocation->options);
    const char *group = invocation_operand(invocation, 0);
    char holder[TROUPE_ID_SIZE];
    bool repeated = false;
    int r;

    for (;; repeated = true) {
        r = troupe_client_create(attached->client, attached->group, &options, data, size, holder);
        if (r != -EPIPE && r != -ECONNRESET)
            break;
        r = attach_again(invocation, group, attached, reconnect);
        if (r != EXIT_OK)
            return r;
    }
    if (r == 1) /* another job takes its place */
        memcpy(id, holder, TROUPE_ID_SIZE);
    return r >= 0 || (repeated && r == -EEXIST)
               ? EXIT_OK
               : explain_refused("", group, r, troupe_client_refusal(attached->client));
}

static int create_large(struct invocation *invocation, const char *data, size_t size)
{
    struct reconnect reconnect = reconnect_make(invocation, RECONNECT_DEFAULT);
    struct attachment_client attached;
    char id[TROUPE_ID_SIZE];
    int r = attach_group(invocation, invocation_operand(invocation, 0), &attached, &reconnect);

    if (r != EXIT_OK)
        return r;
    (void)snprintf(id, sizeof(id), "%s", invocation->options.job.id);
    r = submit_attached(invocation, &attached, &reconnect, data, size, id);
    troupe_client_free(attached.client);
    if (r == EXIT_OK)
        printf(invocation->options.json ? "{\"id\":\"%s\"}\n" : "%s\n", id);
    return r;
}

static void show_id(const struct invocation *invocation, const json_t *reply)
{
    terminal_print(&invocation->out, "%s", SAFE(field_text(reply, "id")));
}

/* A call that submits a job, and is made again after the connection was lost. */
struct submission {
    const char *data;
    size_t size;
    bool repeated;
    json_t *reply; /* owned */
};

/* Creates the job. Also succeeds if an earlier attempt has created it. */
static int create_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct submission *submission = userdata;
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_JOBS "Create",
                     job_parameters(invocation, submission->data, submission->size), true, &reply);
    const bool repeated = submission->repeated;

    submission->repeated = true;
    if (r != EXIT_OK)
        return r;
    reconnect_done(reconnect);
    if (!reply.error)
        submission->reply = json_incref(reply.parameters);
    else if (repeated && varlink_reply_is(&reply, CALL_JOBS "JobExists"))
        submission->reply = json_pack("{s:s}", "id", invocation->options.job.id);
    else
        r = explain_error(reply.error, reply.parameters);
    varlink_reply_deinit(&reply);
    return r == EXIT_OK && !submission->reply ? call_no_memory() : r;
}

static int create_small(struct invocation *invocation, const char *data, size_t size)
{
    struct submission submission = {.data = data, .size = size};
    int r = reconnect_run(invocation, RECONNECT_DEFAULT, create_once, &submission);

    if (r == EXIT_OK)
        r = output_reply(invocation, submission.reply, show_id);
    json_decref(submission.reply);
    return r;
}

int verb_create(struct invocation *invocation)
{
    _cleanup_free_ char *data = NULL;
    char id[TROUPE_ID_SIZE];
    size_t size;
    int r = invocation_payload(invocation, invocation_operand(invocation, 1), &data, &size);

    if (r != EXIT_OK)
        return r;
    give_id(invocation, id);
    return size > CALL_PAYLOAD_MAX ? create_large(invocation, data, size)
                                   : create_small(invocation, data, size);
}
