/* SPDX-License-Identifier: MIT */

/* The calls of a client: jobs, groups, results. */

#include "worker/base/sized.h"
#include "worker/client/client.h"
#include "worker/public.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Sleeps once. Before that, messages are read, since they could keep the awaited answer out of the
 * ring. */
static int rest(struct troupe_client *client, usec_t timeout, bool wakeable)
{
    int r = actor_ease(&client->actor);

    if (r < 0)
        return r;
    client->carrier.channel.wakeable = wakeable;
    r = client_sleep(client, timeout);
    client->carrier.channel.wakeable = false;
    return r;
}

/* Returns whether the supervisor that should have answered has ended. */
static bool is_lost(const struct troupe_client *client, uint64_t number)
{
    const struct pending_request *request = pending_get(&client->pending, number);

    return client->bereft && request && request->sent < client->read;
}

/* Waits for the answer to `number`, and queues the others. */
static int wait_answer(struct troupe_client *client, uint64_t number, struct answer *ret)
{
    for (;;) {
        bool over = client->carrier.over;
        int r = answer_next(client, ret);

        if (r == 0 && ret->number == number)
            return 0;
        if (r == 0)
            r = answer_queue(client, ret);
        else if (r == RING_E_EMPTY)
            /* If the connection ended after the look, there may be one more answer. */
            r = over || is_lost(client, number) ? -EPIPE : rest(client, USEC_INFINITY, false);
        if (r == -ENOMEM)
            /* The answer would arrive later, for a request that this call has abandoned. */
            client->carrier.over = true;
        if (r == -EINTR) {
            r = carrier_interrupted(&client->carrier);
            if (r < 0)
                pending_get(&client->pending, number)->unwanted = true;
        }
        if (r < 0 && r != -ETIMEDOUT)
            return r;
    }
}

/* Forgets a request that will not be answered. */
static int wait_failed(struct troupe_client *client, uint64_t number, int error)
{
    struct pending_request *request = pending_get(&client->pending, number);
    uint64_t ignored;

    if (request && request->unwanted)
        return error;
    (void)pending_give(&client->pending, number, &ignored);
    return error == -EPIPE ? -ECONNRESET : error;
}

/*
 * Waits for an answer of that kind. Returns 0, the error of a refusal, or -ECONNRESET if the
 * supervisor ended first.
 */
static int wait_kind(struct troupe_client *client, uint64_t number, enum protocol_kind kind,
                     struct answer *ret)
{
    int r = wait_answer(client, number, ret);

    if (r < 0)
        return wait_failed(client, number, r);
    if (ret->kind != kind && ret->kind != PROTOCOL_REFUSED) {
        client->carrier.over = true;
        ret->result.error = -EPIPE;
    }
    r = ret->result.error;
    if (r < 0) {
        (void)snprintf(client->refusal, sizeof(client->refusal), "%s", ret->result.reason);
        troupe_result_release(&ret->result);
    }
    return r;
}

_public_ const char *troupe_client_refusal(const struct troupe_client *client)
{
    return client->refusal;
}

_public_ int troupe_client_group(struct troupe_client *client, const char *name,
                                 uint64_t *ret_group)
{
    struct answer answer;
    uint64_t number;
    int r;

    do {
        r = request_lookup(client, name, &number);
        if (r == 0)
            r = wait_kind(client, number, PROTOCOL_FOUND, &answer);
        /* The next supervisor also finds it. */
    } while (r == -ECONNRESET && !client->carrier.over);
    if (r == 0)
        *ret_group = answer.group;
    return r;
}

_public_ int troupe_client_create(struct troupe_client *client, uint64_t group,
                                  const struct troupe_job_options *options, const void *data,
                                  size_t size, char *id)
{
    struct request_job job = {
        .group = group, .options = options, .data = data, .size = size, .wait = true};
    struct answer answer;
    uint64_t number;
    int r;

    r = request_submit(client, &job, &number);
    if (r == 0)
        r = wait_kind(client, number, PROTOCOL_ACCEPTED, &answer);
    if ((r == 0 || r == -ENOTUNIQ) && id)
        memcpy(id, answer.result.id, TROUPE_ID_SIZE);
    return r == 0 ? answer.existing : r;
}

/* The members of a result in its first layout. */
#define RESULT_SIZE_MIN offsetof(struct troupe_result, cause)

static const struct troupe_result EMPTY = TROUPE_RESULT_INIT;

_public_ int troupe_client_do(struct troupe_client *client, uint64_t group,
                              const struct troupe_job_options *options, const void *data,
                              size_t size, struct troupe_result *ret)
{
    struct request_job job = {.group = group,
                              .options = options,
                              .data = data,
                              .size = size,
                              .flags = PROTOCOL_SUBMIT_DO,
                              .wait = true};
    struct answer answer;
    uint64_t number;
    int r;

    r = sized_check(ret, RESULT_SIZE_MIN);
    if (r < 0)
        return r;
    sized_give(ret, &EMPTY, sizeof(EMPTY));
    r = request_submit(client, &job, &number);
    if (r == 0)
        r = wait_kind(client, number, PROTOCOL_DONE, &answer);
    if (r == 0)
        sized_give(ret, &answer.result, sizeof(answer.result));
    return r;
}

_public_ int troupe_client_cancel(struct troupe_client *client, const char *id)
{
    struct answer answer;
    uint64_t number;
    int r = request_cancel(client, id, PROTOCOL_CANCEL, 0, &number);

    return r == 0 ? wait_kind(client, number, PROTOCOL_ACCEPTED, &answer) : r;
}

/* Requests cancellation without waiting for the answer. */
static int cancel_later(struct troupe_client *client, const char *id, enum protocol_kind kind)
{
    uint64_t number;
    int r = request_cancel(client, id, kind, CARRIER_TRY, &number);

    if (r < 0)
        return r;
    pending_get(&client->pending, number)->unwanted = true;
    troupe_client_flush(client);
    return 0;
}

_public_ int troupe_client_abandon(struct troupe_client *client, const char *id)
{
    return cancel_later(client, id, PROTOCOL_CANCEL);
}

_public_ int troupe_client_withdraw(struct troupe_client *client, const char *id)
{
    return cancel_later(client, id, PROTOCOL_WITHDRAW);
}

_public_ int troupe_client_submit(struct troupe_client *client, uint64_t group,
                                  const struct troupe_job_options *options, const void *data,
                                  size_t size, uint64_t cookie)
{
    struct request_job job = {.group = group,
                              .options = options,
                              .data = data,
                              .size = size,
                              .cookie = cookie,
                              .flags = PROTOCOL_SUBMIT_DO};
    uint64_t number;

    return request_submit(client, &job, &number);
}

_public_ int troupe_client_wait(struct troupe_client *client, const char *id, uint64_t cookie)
{
    return request_wait(client, id, cookie);
}

/*
 * Ends one of the requests that the supervisor will no longer answer; requests that wait for a job
 * are instead sent again, if another supervisor has taken over. Returns 0, or -EAGAIN if none is
 * left.
 */
static int next_lost(struct troupe_client *client, struct troupe_result *ret)
{
    struct pending_request *request;
    uint64_t number;

    while ((request = pending_lost(&client->pending, client->read, &number))) {
        if (request->unwanted) {
            (void)pending_give(&client->pending, number, &ret->cookie);
            continue;
        }
        if (request->id && !client->carrier.over &&
            request_wait_again(client, request, number) == 0)
            continue;
        *ret = (struct troupe_result){
            .error = -ECONNRESET, .reason = "the supervisor that had it is gone", .data = ""};
        return pending_give(&client->pending, number, &ret->cookie);
    }
    client->bereft = client->carrier.over;
    return -EAGAIN;
}

static int next(struct troupe_client *client, struct answer *ret, usec_t timeout)
{
    usec_t deadline = 0, left = timeout;

    if (results_dequeue(&client->results, &ret->result))
        return 0;
    for (;;) {
        const bool over = client->carrier.over;
        int r = answer_next(client, ret);

        if (r == -EPIPE || (r == RING_E_EMPTY && over))
            client_lose(client, UINT64_MAX, 0);
        if (r != 0 && client->bereft && next_lost(client, &ret->result) == 0)
            return 0;
        if (r != RING_E_EMPTY)
            return r;
        if (over)
            return -EPIPE;
        if (left == 0) {
            if (!client_hung_up(client))
                return -EAGAIN;
            continue;
        }
        if (deadline == 0)
            deadline = clock_deadline(timeout);
        r = rest(client, left, true);
        if (r < 0 && r != -ETIMEDOUT)
            return r;
        left = clock_left(deadline);
    }
}

_public_ int troupe_client_next(struct troupe_client *client, struct troupe_result *ret,
                                uint64_t timeout_usec)
{
    struct answer answer;
    int r = sized_check(ret, RESULT_SIZE_MIN);

    if (r == 0)
        r = next(client, &answer, timeout_usec);
    if (r == 0)
        sized_give(ret, &answer.result, sizeof(answer.result));
    return r;
}

_public_ int troupe_client_blob(struct troupe_client *client, size_t size, void **ret_data)
{
    int r;

    if (client->carrier.made.fd >= 0)
        return -EALREADY;
    r = blob_new(&client->carrier.made, size);
    if (r == 0)
        *ret_data = client->carrier.made.data;
    return r;
}

_public_ void troupe_client_blob_drop(struct troupe_client *client)
{
    blob_deinit(&client->carrier.made);
}
