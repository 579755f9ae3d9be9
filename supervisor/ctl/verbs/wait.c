/* SPDX-License-Identifier: MIT */

/* The verbs wait and watch. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>

/* How long a supervisor that has a result may take to hand it over. */
#define LARGE_USEC (60 * USEC_PER_SEC)

/* ---- the end of a job ---- */

static enum troupe_end end_of(const json_t *job)
{
    static const enum troupe_end ends[] = {TROUPE_SUCCEEDED, TROUPE_CANCELLED, TROUPE_DEAD};

    for (size_t i = 0; i < ELEMENTS(ends); i++)
        if (field_is(job, "state", troupe_end_name(ends[i])))
            return ends[i];
    return TROUPE_REJECTED;
}

/* Borrows from the job and `data`. */
static struct troupe_result result_of(const json_t *job, const char *data, size_t size)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    result.end = end_of(job);
    result.code = (int)field_int(job, "code");
    result.attempts = (unsigned)field_count(job, "attempt");
    result.reason = field_text(job, "reason");
    result.data = data;
    result.size = size;
    (void)snprintf(result.id, sizeof(result.id), "%s", field_text(job, "id"));
    return result;
}

/* Writes a result that is too large for an answer over the socket. Returns 0 or -errno. */
static int write_large(const struct invocation *invocation, const char *id)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    struct troupe_client *client;
    int r = troupe_client_connect(&client, invocation_socket(invocation));

    if (r < 0)
        return r;
    r = troupe_client_wait(client, id, 0);
    if (r == 0)
        r = troupe_client_next(client, &result, LARGE_USEC);
    if (r == 0 && (result.error < 0 || result.size == 0))
        r = result.error < 0 ? result.error : -ENODATA;
    if (r == 0)
        (void)terminal_write(&invocation->out, result.data, result.size);
    troupe_result_release(&result);
    troupe_client_free(client);
    return r;
}

static int tell_large(const struct invocation *invocation, const json_t *job)
{
    const char *id = field_text(job, "id");

    if (write_large(invocation, id) == 0)
        return EXIT_OK;
    complain("job %s has succeeded, but %s", SAFE(id), SAFE(field_text(job, "missing")));
    return EXIT_FAILED;
}

static int tell_result(const struct invocation *invocation, const json_t *job)
{
    _cleanup_free_ char *data = NULL;
    struct troupe_result result;
    size_t size;
    int r = field_payload(job, "result", &data, &size);

    if (r == -EPROTO) {
        complain("the result of job %s is malformed", SAFE(field_text(job, "id")));
        return EXIT_FAILED;
    }
    if (r < 0)
        return call_no_memory();
    result = result_of(job, data ? data : "", size);
    if (result.end != TROUPE_SUCCEEDED)
        return field_is(job, "cause", "deadline") ? (explain_end("", &result), EXIT_TIMEOUT)
                                                  : explain_end("", &result);
    if (field_true(job, "restricted")) {
        complain("job %s has succeeded; its result is not for this user, see ReadGroup= in "
                 "troupe.conf(5)",
                 SAFE(result.id));
        return EXIT_NOT_PERMITTED;
    }
    if (field_has(job, "missing"))
        return tell_large(invocation, job);
    (void)terminal_write(&invocation->out, result.data, result.size);
    return EXIT_OK;
}

static int tell_end(const struct invocation *invocation, const json_t *reply)
{
    const json_t *job = json_object_get(reply, "job");
    int r;

    if (!invocation->options.json)
        return tell_result(invocation, job);
    r = output_json(invocation, reply);
    if (r == EXIT_OK && !field_is(job, "state", "succeeded"))
        r = EXIT_FAILED;
    return r;
}

/* ---- waiting ---- */

static int wait_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    int r = call(invocation, CALL_JOBS "Wait",
                 json_pack("{s:s}", "id", invocation_operand(invocation, 0)), true, userdata);

    if (r == EXIT_OK)
        reconnect_done(reconnect);
    return r;
}

int verb_wait(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    int r;

    invocation->waits = true;
    r = reconnect_run(invocation, RECONNECT_DEFAULT, wait_once, &reply);
    invocation->waits = false;
    if (r == EXIT_TIMEOUT)
        complain("job %s has not ended in time, and continues ('troupectl why %s' tells more)",
                 SAFE(invocation_operand(invocation, 0)), SAFE(invocation_operand(invocation, 0)));
    return r == EXIT_OK ? tell_end(invocation, reply) : r;
}

/* ---- watching ---- */

struct watched {
    int64_t after; /* the last item that was written; 0 = none */
    json_t *job;   /* once it has ended; owned */
};

/* Writes an item as a line. Returns an exit status. */
static int write_item(const json_t *item)
{
    _cleanup_free_ char *data = NULL;
    size_t size = 0;

    if (field_payload(item, "data", &data, &size) < 0)
        return EXIT_FAILED;
    fwrite(data ? data : "", 1, size, stdout);
    if (size == 0 || data[size - 1] != '\n')
        putchar('\n');
    return EXIT_OK;
}

static int take_items(struct invocation *invocation, const json_t *parameters, bool last,
                      void *userdata)
{
    const json_t *items = json_object_get(parameters, "items");
    struct watched *watched = userdata;
    int r = EXIT_OK;

    for (size_t i = 0; r == EXIT_OK && i < json_array_size(items); i++) {
        watched->after = field_int(json_array_get(items, i), "at");
        r = invocation->options.json ? output_json(invocation, json_array_get(items, i))
                                     : write_item(json_array_get(items, i));
    }
    if (last)
        watched->job = json_incref(json_object_get(parameters, "job"));
    return r == EXIT_OK && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

static int watch_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct watched *watched = userdata;
    int r = call_open(invocation);

    if (r != EXIT_OK)
        return r;
    reconnect_done(reconnect);
    return call_more(invocation, CALL_JOBS "Stream",
                     json_pack("{s:s, s:I}", "id", invocation_operand(invocation, 0), "after",
                               (json_int_t)watched->after),
                     true, take_items, watched);
}

int verb_watch(struct invocation *invocation)
{
    struct watched watched = {0};
    struct troupe_result result;
    int r;

    invocation->lines = true;
    r = reconnect_run(invocation, USEC_INFINITY, watch_once, &watched);
    if (r == EXIT_OK) {
        result = result_of(watched.job, "", 0);
        if (result.end != TROUPE_SUCCEEDED)
            r = explain_end("", &result);
    }
    json_decref(watched.job);
    return r;
}
