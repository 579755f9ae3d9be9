/* SPDX-License-Identifier: MIT */

/*
 * The verbs create and do. Small payloads of `create` go over the socket. Since results may have
 * any size, `do` uses the rings.
 */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/attach.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/hint.h"
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

    return json_pack("{s:s*, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "id",
                     job->id, "key", (const char *)job->key, "max_retries",
                     job->max_retries >= 0 ? json_integer(job->max_retries) : NULL, "priority",
                     options->priority >= 0 ? json_integer(options->priority) : NULL,
                     "timeout_usec", field_given(job->timeout_usec), "backoff_min_usec",
                     field_given(job->backoff_min_usec), "backoff_max_usec",
                     field_given(job->backoff_max_usec), "delay_usec", field_given(job->delay_usec),
                     "at", field_given(job->at_usec), "wait_usec", field_given(job->wait_usec),
                     "deadline_usec", field_given(job->deadline_usec));
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

/* Creates the job over the rings. Also succeeds if an earlier attempt has created it. */
static int create_attached(struct invocation *invocation, struct attachment_client *attached,
                           struct reconnect *reconnect, const char *data, size_t size)
{
    struct troupe_job_options options = attach_job_options(&invocation->options);
    const char *group = invocation_operand(invocation, 0);
    bool repeated = false;
    int r;

    for (;; repeated = true) {
        r = troupe_client_create(attached->client, attached->group, &options, data, size, NULL);
        if (r != -EPIPE && r != -ECONNRESET)
            break;
        r = attach_again(invocation, group, attached, reconnect);
        if (r != EXIT_OK)
            return r;
    }
    return r == 0 || (repeated && r == -EEXIST) ? EXIT_OK : explain_refused("", group, r, "");
}

static int create_large(struct invocation *invocation, const char *data, size_t size)
{
    struct reconnect reconnect = reconnect_make(invocation, RECONNECT_DEFAULT);
    struct attachment_client attached;
    int r = attach_group(invocation, invocation_operand(invocation, 0), &attached, &reconnect);

    if (r != EXIT_OK)
        return r;
    r = create_attached(invocation, &attached, &reconnect, data, size);
    troupe_client_free(attached.client);
    if (r == EXIT_OK)
        printf(invocation->options.json ? "{\"id\":\"%s\"}\n" : "%s\n", invocation->options.job.id);
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

struct doing {
    struct invocation *invocation;
    const char *group;
    struct troupe_job_options options;
    const char *data;
    size_t size;
    struct attachment_client attached;
    struct attach_durability durability;
    usec_t lost_at; /* when the connection was lost */
    struct reconnect reconnect;
    struct hint hint;
};

/* Waits for the end of the job; the first SIGINT cancels it. Returns 0 or -errno. */
static int await_end(struct doing *doing, struct troupe_result *ret)
{
    struct troupe_client *client = doing->attached.client;
    bool cancelled = interrupt_seen();
    int r;

    for (;;) {
        if (interrupt_seen() && !cancelled) {
            cancelled = true;
            complain("cancelling the job; a second signal exits without waiting for its end");
            r = troupe_client_cancel(client, doing->options.id);
            if (r < 0 && r != -ESRCH && r != -EALREADY)
                return r;
        }
        r = troupe_client_next(client, ret, INTERRUPT_GLANCE);
        if (r != -EAGAIN && r != -EINTR)
            return r;
        if (hint_due(&doing->hint))
            hint_ask(&doing->hint, doing->options.id);
    }
}

static bool is_lost(int r, const struct troupe_result *result)
{
    return r == -EPIPE || r == -ECONNRESET || (r == 0 && result->error == -ECONNRESET);
}

static int submit(const struct doing *doing)
{
    return troupe_client_submit(doing->attached.client, doing->attached.group, &doing->options,
                                doing->data, doing->size, 0);
}

/* Waits for the job by its id. If it was never accepted by a durable group, submits it again. */
static int wait_or_repeat(struct doing *doing, struct troupe_result *result)
{
    int r = troupe_client_wait(doing->attached.client, doing->options.id, 0);

    if (r == 0)
        r = await_end(doing, result);
    if (r == 0 && result->error == -ESRCH &&
        attach_may_repeat(&doing->durability, doing->lost_at)) {
        troupe_result_release(result);
        r = submit(doing);
        if (r == 0)
            r = await_end(doing, result);
    }
    /* This supervisor is stopping; the next one knows the job, or takes it. */
    return r == 0 && result->error == -ESHUTDOWN ? -ECONNRESET : r;
}

/* Waits for the end of a job whose connection was lost, after connecting again unless it has
 * lasted. Returns 0 with the result, or an exit status. */
static int take_up(struct doing *doing, struct troupe_result *result)
{
    int r;

    doing->lost_at = clock_now();
    troupe_result_release(result);
    r = wait_or_repeat(doing, result);
    while (is_lost(r, result)) {
        troupe_result_release(result); /* before its client is freed */
        r = attach_again(doing->invocation, doing->group, &doing->attached, &doing->reconnect);
        if (r == EXIT_OK)
            r = wait_or_repeat(doing, result);
    }
    if (r == EXIT_UNREACHABLE && interrupt_seen())
        return EXIT_INTERRUPTED;
    if (r == 0 && result->error == -ESRCH)
        return explain_unknown("", doing->options.id);
    return r < 0 ? explain_refused("", doing->group, r, "") : r;
}

static int print_end(const struct doing *doing, const struct troupe_result *result)
{
    json_auto_t *object = explain_json(doing->group, result, NULL);
    int r = object ? output_json(doing->invocation, object) : call_no_memory();

    if (r != EXIT_OK || (result->error == 0 && result->end == TROUPE_SUCCEEDED))
        return r;
    return explain_status(result);
}

static int tell_end(const struct doing *doing, const struct troupe_result *result)
{
    if (doing->invocation->options.json)
        return print_end(doing, result);
    if (result->error < 0)
        return explain_refused("", doing->group, result->error, result->reason);
    if (result->end != TROUPE_SUCCEEDED)
        return result->cause == TROUPE_CAUSE_DEADLINE ? (explain_end("", result), EXIT_TIMEOUT)
                                                      : explain_end("", result);
    fwrite(result->data, 1, result->size, stdout);
    return EXIT_OK;
}

/* Returns an exit status. */
static int submit_and_wait(struct doing *doing)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = submit(doing);

    if (r == 0) {
        r = await_end(doing, &result);
        if (is_lost(r, &result))
            r = take_up(doing, &result);
        if (r > 0)
            return r;
    }
    if (r < 0)
        return explain_refused("", doing->group, r, "");
    r = tell_end(doing, &result);
    troupe_result_release(&result);
    return r;
}

int verb_do(struct invocation *invocation)
{
    _cleanup_free_ char *data = NULL;
    char id[TROUPE_ID_SIZE];
    struct doing doing = {
        .invocation = invocation,
        .group = invocation_operand(invocation, 0),
        .reconnect = reconnect_make(invocation, RECONNECT_DEFAULT),
    };
    int r = invocation_payload(invocation, invocation_operand(invocation, 1), &data, &doing.size);

    if (r != EXIT_OK)
        return r;
    give_id(invocation, id);
    doing.data = data;
    doing.options = attach_job_options(&invocation->options);
    r = attach_group(invocation, doing.group, &doing.attached, &doing.reconnect);
    if (r != EXIT_OK)
        return r;
    r = attach_ask_durability(invocation, &doing.durability);
    if (r == EXIT_OK) {
        doing.options.keep_result = doing.durability.durable;
        doing.hint = hint_make(invocation);
        interrupt_catch();
        r = submit_and_wait(&doing);
    }
    troupe_client_free(doing.attached.client);
    return r;
}
