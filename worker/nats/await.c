/* SPDX-License-Identifier: MIT */
/* Waits for the result of a job, whichever machine does it. */
#include "worker/nats/verbs.h"

#include "shared/base/base64.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/quantity.h"
#include "shared/base/utf8.h"
#include "worker/nats/publication.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How often to ask the stream without news: a result that was published while the connection was
 * lost is only there. */
#define LOOK_AGAIN (5 * USEC_PER_SEC)
/* How soon to ask it after a publication, which the stream may not have yet, and after an error. */
#define LOOK_SOON (50 * USEC_PER_MSEC)
#define RETRY     (500 * USEC_PER_MSEC)

#define SUCCEEDED "succeeded"
/* A longer answer of a job that did not succeed is not shown. */
#define ANSWER_MAX ((size_t)4 << 10)

struct wait {
    const struct output *output;
    struct client client;
    natsSubscription *subscription;
    const char *id;
    char stream[33], subject[128];
    uint64_t sequence;
    usec_t deadline;
};

static int parse_id(struct wait *wait)
{
    const char *colon = strchr(wait->id, ':'), *end = "";
    const size_t length = colon ? (size_t)(colon - wait->id) : 0;

    if (length == 0 || length >= sizeof(wait->stream) ||
        quantity_parse_number(colon + 1, &wait->sequence, &end) < 0 || *end != '\0' ||
        wait->sequence == 0 || strcspn(wait->id, ". *>") != strlen(wait->id)) {
        log_error("'%s' is not the id of a NATS job; allowed: STREAM:SEQUENCE, such as JOBS:17",
                  wait->id);
        return CLIENT_USAGE;
    }
    memcpy(wait->stream, wait->id, length);
    wait->stream[length] = '\0';
    (void)snprintf(wait->subject, sizeof(wait->subject), PUBLICATION_RESULT_SUBJECT "%s.%" PRIu64,
                   wait->stream, wait->sequence);
    return CLIENT_OK;
}

/* ---- the result ---- */

static json_t *payload(const char *data, size_t size)
{
    _cleanup_free_ char *text = NULL;

    if (utf8_is_text(data, size))
        return json_pack("{s:s, s:s%}", "encoding", "utf8", "data", data, size);
    text = malloc(base64_size(size) + 1);
    if (!text)
        return NULL;
    base64_encode(text, data, size);
    return json_pack("{s:s, s:s%}", "encoding", "base64", "data", text, base64_size(size));
}

static const char *header(natsMsg *message, const char *name)
{
    const char *value;

    return natsMsgHeader_Get(message, name, &value) == NATS_OK && utf8_is_text(value, strlen(value))
               ? value
               : NULL;
}

static json_t *number(natsMsg *message, const char *name)
{
    const char *value = header(message, name);

    return value ? json_integer(strtoll(value, NULL, 10)) : NULL;
}

/* Says why the job did not succeed, with the worker's answer. */
static void explain(const struct wait *wait, natsMsg *message, const char *end)
{
    const char *attempts = header(message, "Troupe-Attempts"),
               *code = header(message, "Troupe-Code");
    const char *reason = header(message, "Troupe-Reason"), *data = natsMsg_GetData(message);
    const size_t size = (size_t)natsMsg_GetDataLength(message);

    log_error("job %s %s %s after %s attempt%s (code %s)%s%s", wait->id,
              strcmp(end, "dead") == 0 ? "is" : "was", end, attempts ? attempts : "1",
              attempts && strcmp(attempts, "1") != 0 ? "s" : "", code ? code : "0",
              reason ? ": " : "", reason ? reason : "");
    if (size > 0 && size <= ANSWER_MAX && utf8_is_text(data, size))
        log_error("its answer: %.*s", (int)size, data);
}

/* Writes the result to standard output, anything else to standard error. */
static int tell(const struct wait *wait, natsMsg *message, const char *end)
{
    const char *missing = header(message, "Troupe-Missing");

    if (strcmp(end, SUCCEEDED) != 0) {
        explain(wait, message, end);
        return CLIENT_FAILED;
    }
    if (missing) {
        log_error("job %s has succeeded, but %s", wait->id, missing);
        return CLIENT_FAILED;
    }
    (void)fwrite(natsMsg_GetData(message), 1, (size_t)natsMsg_GetDataLength(message), stdout);
    return client_flush();
}

static int print_json(const struct wait *wait, natsMsg *message, const char *end)
{
    const char *missing = header(message, "Troupe-Missing");
    json_t *result =
        missing ? NULL : payload(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message));

    if (!missing && !result)
        return client_fail("the result", NATS_NO_MEMORY);
    return client_print(json_pack(
        "{s:{s:s, s:s, s:o*, s:o*, s:s*, s:o*, s:s*}}", "job", "id", wait->id, "state", end,
        "attempt", number(message, "Troupe-Attempts"), "code", number(message, "Troupe-Code"),
        "reason", header(message, "Troupe-Reason"), "result", result, "missing", missing));
}

/* ---- the wait ---- */

static int print(const struct wait *wait, natsMsg *message)
{
    const char *end = header(message, "Troupe-End");
    int r;

    if (!wait->output->json)
        return tell(wait, message, end);
    r = print_json(wait, message, end);
    return r == CLIENT_OK && strcmp(end, SUCCEEDED) != 0 ? CLIENT_FAILED : r;
}

static bool is_passing(natsStatus s)
{
    return s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS || s == NATS_CONNECTION_DISCONNECTED;
}

/* A missing stream means a missing message. */
static natsStatus found(natsStatus s, jsErrCode code)
{
    return code == JSStreamNotFoundErr ? NATS_NOT_FOUND : s;
}

/* Asks the stream for the result. Returns NATS_NOT_FOUND if it has none. A message without
 * Troupe-End is not a result; the result will replace it. */
static natsStatus look(const struct wait *wait, natsMsg **ret)
{
    jsErrCode code = 0;
    natsStatus s =
        js_GetLastMsg(ret, wait->client.js, PUBLICATION_STREAM, wait->subject, NULL, &code);

    if (s != NATS_OK || header(*ret, "Troupe-End"))
        return found(s, code);
    natsMsg_Destroy(*ret);
    *ret = NULL;
    return NATS_NOT_FOUND;
}

/* The job's message leaves its stream only after the result was stored. */
static natsStatus look_for_job(const struct wait *wait)
{
    natsMsg *message = NULL;
    jsErrCode code = 0;
    natsStatus s = js_GetMsg(&message, wait->client.js, wait->stream, wait->sequence, NULL, &code);

    natsMsg_Destroy(message);
    return found(s, code);
}

/* Looks for the result. If there is none, finds out whether one will come. */
static natsStatus look_for_both(const struct wait *wait, natsMsg **ret, bool *ret_gone)
{
    natsStatus s = look(wait, ret);

    *ret_gone = false;
    if (s != NATS_NOT_FOUND)
        return s;
    s = look_for_job(wait);
    if (s == NATS_OK)
        return NATS_NOT_FOUND;
    if (s == NATS_NOT_FOUND) {
        s = look(wait, ret); /* it may have ended between the two */
        *ret_gone = s == NATS_NOT_FOUND;
    }
    return s;
}

/* Waits until something is published for the subject, or the time is over. */
static usec_t rest(const struct wait *wait, usec_t pause)
{
    const usec_t left = clock_left(wait->deadline);
    const usec_t limit = left < pause ? left : pause;
    natsMsg *message = NULL;
    natsStatus s = natsSubscription_NextMsg(&message, wait->subscription,
                                            (int64_t)(limit / USEC_PER_MSEC) + 1);

    natsMsg_Destroy(message);
    if (s != NATS_OK && s != NATS_TIMEOUT)
        nats_Sleep((int64_t)(LOOK_SOON / USEC_PER_MSEC));
    return s == NATS_OK ? LOOK_SOON : LOOK_AGAIN;
}

/* Only warns, since the subscription may still bring the result. */
static void warn_if_denied(const struct wait *wait, bool *was_told)
{
    if (*was_told || !client_is_denied(&wait->client))
        return;
    client_warn_denied(&wait->client);
    *was_told = true;
}

static int wait_for_result(const struct wait *wait)
{
    usec_t pause = LOOK_AGAIN;
    bool was_told = false;

    for (;;) {
        natsMsg *message = NULL;
        bool gone;
        natsStatus s = look_for_both(wait, &message, &gone);

        if (s == NATS_OK) {
            const int r = print(wait, message);

            natsMsg_Destroy(message);
            return r;
        }
        if (gone) {
            log_error("there is no job %s: it never existed, or its result has expired", wait->id);
            return CLIENT_NOT_FOUND;
        }
        if (s != NATS_NOT_FOUND && !is_passing(s))
            return client_fail("the result", s);
        warn_if_denied(wait, &was_told);
        if (clock_left(wait->deadline) == 0) {
            log_error("job %s has not ended in that time", wait->id);
            return CLIENT_TIMEOUT;
        }
        pause = rest(wait, s == NATS_NOT_FOUND ? pause : RETRY);
    }
}

/* Printed when a signal ends the program. */
static char farewell[256];

static void on_signal(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, farewell, strlen(farewell));
    _exit(CLIENT_INTERRUPTED);
}

/* The job does not end with the wait. */
static void catch_signals(const struct wait *wait)
{
    const struct sigaction action = {.sa_handler = on_signal};

    (void)snprintf(farewell, sizeof(farewell),
                   "troupe-nats: job %s continues; 'troupe-nats wait %s' waits for it\n", wait->id,
                   wait->id);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

int await_job(const struct config *config, const char *id, usec_t timeout,
              const struct output *output)
{
    struct wait wait = {
        .output = output, .client = CLIENT_NULL, .id = id, .deadline = clock_deadline(timeout)};
    natsStatus s;
    int r = parse_id(&wait);

    if (r == CLIENT_OK) {
        catch_signals(&wait);
        r = client_open(&wait.client, config);
    }
    if (r == CLIENT_OK) {
        s = natsConnection_SubscribeSync(&wait.subscription, wait.client.connection, wait.subject);
        r = s == NATS_OK ? wait_for_result(&wait) : client_fail("the result", s);
    }
    natsSubscription_Destroy(wait.subscription);
    client_close(&wait.client);
    if (r == CLIENT_UNREACHABLE)
        (void)fputs(farewell, stderr);
    return r;
}
