/* SPDX-License-Identifier: MIT */

/*
 * The verbs create and do. Small payloads go over the socket. Since results may have any size, `do`
 * uses the rings unless JSON is wanted.
 */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/attach.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/input.h"
#include "supervisor/ctl/command/interrupt.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* How often a wait checks for an interrupt. */
#define GLANCE (100 * USEC_PER_MSEC)

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

/* For Create or Do over the socket. */
static json_t *job_parameters(const struct invocation *invocation, const char *data, size_t size)
{
    return json_pack("{s:s, s:o, s:o}", "group", invocation_operand(invocation, 0), "payload",
                     field_payload_new(data, size), "options", options_json(&invocation->options));
}

static int create_large(struct invocation *invocation, const char *data, size_t size)
{
    struct troupe_job_options options = attach_job_options(&invocation->options);
    const char *group = invocation_operand(invocation, 0);
    struct attachment_client attached;
    char id[TROUPE_ID_SIZE];
    int r = attach_group(invocation, group, &attached);

    if (r != EXIT_OK)
        return r;
    r = troupe_client_create(attached.client, attached.group, &options, data, size, id);
    troupe_client_free(attached.client);
    if (r < 0)
        return explain_refused(group, r, "");
    printf(invocation->options.json ? "{\"id\":\"%s\"}\n" : "%s\n", id);
    return EXIT_OK;
}

static void show_id(const struct invocation *invocation, const json_t *reply)
{
    terminal_print(&invocation->out, "%s", SAFE(field_text(reply, "id")));
}

int verb_create(struct invocation *invocation)
{
    _cleanup_free_ char *data = NULL;
    size_t size;
    int r = input_payload(invocation, invocation_operand(invocation, 1), &data, &size);

    if (r != EXIT_OK)
        return r;
    if (size > VARLINK_CLIENT_PAYLOAD_MAX)
        return create_large(invocation, data, size);
    return call_print(invocation, CALL_JOBS "Create", job_parameters(invocation, data, size), true,
                      show_id);
}

static int do_json(struct invocation *invocation, const char *data, size_t size)
{
    json_auto_t *reply = NULL;
    int r = input_check_size(size);

    if (r == EXIT_OK)
        r = call(invocation, CALL_JOBS "Do", job_parameters(invocation, data, size), true, &reply);
    if (r == EXIT_OK)
        r = output_json(invocation, reply);
    if (r == EXIT_OK && !field_is(json_object_get(reply, "job"), "state", "succeeded"))
        r = EXIT_FAILED;
    return r;
}

/* Makes an id, so that the job can be cancelled while it runs. */
static const char *make_id(char *id, size_t size)
{
    /* Used if the kernel has no random numbers yet; unique enough. */
    uint64_t random[2] = {(uint64_t)getpid(), clock_realtime()};

    (void)!getrandom(random, sizeof(random), GRND_NONBLOCK);
    snprintf(id, size, "do-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return id;
}

/* Waits for the end of the job; the first SIGINT cancels it. */
static int await_end(struct troupe_client *client, const char *id, struct troupe_result *ret)
{
    bool cancelled = false;
    int r;

    for (;;) {
        if (interrupt_seen() && !cancelled) {
            cancelled = true;
            complain("cancelling the job; a second signal exits without waiting for its end");
            r = troupe_client_cancel(client, id);
            if (r < 0 && r != -ESRCH && r != -EALREADY)
                return r;
        }
        r = troupe_client_next(client, ret, GLANCE);
        if (r != -EAGAIN && r != -EINTR)
            return r;
    }
}

static int tell_end(const char *group, const struct troupe_result *result)
{
    bool success = result->error == 0 && result->end == TROUPE_SUCCEEDED;

    if (result->error < 0)
        return explain_refused(group, result->error, result->reason);
    if (!success)
        return result->timed_out ? (explain_end("", result), EXIT_TIMEOUT)
                                 : explain_end("", result);
    fwrite(result->data, 1, result->size, stdout);
    return EXIT_OK;
}

static int do_attached(struct invocation *invocation, const char *data, size_t size)
{
    struct troupe_job_options options = attach_job_options(&invocation->options);
    const char *group = invocation_operand(invocation, 0);
    struct attachment_client attached;
    struct troupe_result result = TROUPE_RESULT_INIT;
    char id[TROUPE_ID_SIZE];
    int r = attach_group(invocation, group, &attached);

    if (r != EXIT_OK)
        return r;
    if (!options.id)
        options.id = make_id(id, sizeof(id));
    interrupt_catch();
    r = troupe_client_submit(attached.client, attached.group, &options, data, size, 0);
    if (r == 0)
        r = await_end(attached.client, options.id, &result);
    if (r < 0) {
        r = explain_refused(group, r, "");
    } else {
        r = tell_end(group, &result);
        troupe_result_release(&result);
    }
    troupe_client_free(attached.client);
    return r;
}

int verb_do(struct invocation *invocation)
{
    _cleanup_free_ char *data = NULL;
    size_t size;
    int r = input_payload(invocation, invocation_operand(invocation, 1), &data, &size);

    if (r != EXIT_OK)
        return r;
    return invocation->options.json ? do_json(invocation, data, size)
                                    : do_attached(invocation, data, size);
}
