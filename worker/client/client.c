/* SPDX-License-Identifier: MIT */
#include "worker/client/client.h"

#include "shared/base/cleanup.h"
#include "worker/base/sized.h"
#include "worker/client/connect.h"
#include "worker/public.h"
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

_public_ int troupe_client_connect(struct troupe_client **ret, const char *socket_path)
{
    struct connection connection = CONNECTION_NULL;
    struct troupe_client *client;
    int r;

    r = connection_open(&connection, socket_path);
    if (r < 0)
        return r;
    client = calloc(1, sizeof(*client));
    r = client
            ? carrier_open(&client->carrier, &client_carrier, &connection.fds, connection.control)
            : -ENOMEM;
    if (r < 0) {
        free(client);
        connection_deinit(&connection);
        return r;
    }
    client->socket = connection.socket;
    memcpy(client->address, connection.address, sizeof(client->address));
    client->results.largest = client->carrier.channel.theirs.ring_size;
    actor_init(&client->actor, &client->carrier, client->address);
    *ret = client;
    return 0;
}

_public_ void troupe_client_free(struct troupe_client *client)
{
    if (!client)
        return;
    actor_deinit(&client->actor);
    results_deinit(&client->results);
    pending_deinit(&client->pending);
    carrier_deinit(&client->carrier);
    close_fd(client->socket);
    free(client);
}

_public_ void troupe_client_flush(struct troupe_client *client)
{
    carrier_flush(&client->carrier);
}

/* ---- waiting ---- */

static bool hung_up(const struct troupe_client *client)
{
    char ignored[256];
    ssize_t n;

    do
        n = recv(client->socket, ignored, sizeof(ignored), MSG_DONTWAIT);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

/* Until the eventfd or the socket has something, or `timeout`. */
static int poll_both(struct troupe_client *client, usec_t timeout)
{
    struct pollfd pollers[] = {
        {.fd = client->carrier.channel.wait_fd, .events = POLLIN},
        {.fd = client->socket, .events = POLLIN},
    };
    struct timespec limit = usec_to_timespec(timeout);
    int r;

    r = ppoll(pollers, ELEMENTS(pollers), timeout == USEC_INFINITY ? NULL : &limit, NULL);
    if (r < 0)
        return -errno;
    if (pollers[1].revents != 0 && !ring_pending(&client->carrier.channel.in) && hung_up(client))
        client->carrier.over = true;
    return r == 0 ? -ETIMEDOUT : 0;
}

int client_arm(struct troupe_client *client)
{
    bool woken;

    troupe_client_flush(client);
    channel_release(&client->carrier.channel);
    client->unreleased = 0;
    if (!channel_arm(&client->carrier.channel, &woken))
        return woken ? -EINTR : 1;
    if (!actor_control_changed(&client->actor))
        return 0;
    channel_end_sleep(&client->carrier.channel);
    return 1;
}

int client_sleep(struct troupe_client *client, usec_t timeout)
{
    int r;

    if (timeout > 0) {
        troupe_client_flush(client);
        if (channel_spin(&client->carrier.channel))
            return 0;
    }
    r = client_arm(client);
    if (r != 0)
        return r < 0 ? r : 0;
    r = poll_both(client, timeout);
    channel_end_sleep(&client->carrier.channel);
    return r;
}

/* Messages that nobody handles meanwhile must not keep the answer out of the ring. */
static int rest(struct troupe_client *client, usec_t timeout)
{
    int r = actor_ease(&client->actor);

    return r < 0 ? r : client_sleep(client, timeout);
}

/* ---- calls that wait for their own answer ---- */

/* Waits for the answer to `number`; what else arrives is queued. */
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
            /* Only what was over before looking can bring nothing more. */
            r = over ? -EPIPE : rest(client, USEC_INFINITY);
        if (r == -ENOMEM)
            /* The answer will still come, to a question that nobody remembers. */
            client->carrier.over = true;
        if (r < 0 && r != -EINTR && r != -ETIMEDOUT)
            return r;
    }
}

/* The same, for calls that are told no more than yes or no. */
static int wait_kind(struct troupe_client *client, uint64_t number, enum protocol_kind kind,
                     struct answer *ret)
{
    int r;

    r = wait_answer(client, number, ret);
    if (r < 0)
        return r;
    if (ret->kind != kind && ret->kind != PROTOCOL_REFUSED) {
        client->carrier.over = true;
        ret->result.error = -EPIPE;
    }
    r = ret->result.error;
    if (r < 0)
        troupe_result_release(&ret->result);
    return r;
}

_public_ int troupe_client_group(struct troupe_client *client, const char *name,
                                 uint64_t *ret_group)
{
    struct answer answer;
    uint64_t number;
    int r;

    r = request_lookup(client, name, &number);
    if (r == 0)
        r = wait_kind(client, number, PROTOCOL_FOUND, &answer);
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
    if (r == 0 && id)
        memcpy(id, answer.result.id, TROUPE_ID_SIZE);
    return r;
}

/* What the first layout of a result had. */
#define RESULT_SIZE_MIN offsetof(struct troupe_result, timed_out)

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
    int r;

    r = request_by_id(client, PROTOCOL_CANCEL, id, 0, 0, &number);
    return r == 0 ? wait_kind(client, number, PROTOCOL_ACCEPTED, &answer) : r;
}

/* ---- pipelined ---- */

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
    uint64_t number;

    return request_by_id(client, PROTOCOL_WAIT, id, cookie, CARRIER_TRY, &number);
}

_public_ int troupe_client_next(struct troupe_client *client, struct troupe_result *ret,
                                uint64_t timeout_usec)
{
    usec_t deadline = 0, left = timeout_usec;
    struct answer answer;
    int r;

    r = sized_check(ret, RESULT_SIZE_MIN);
    if (r < 0)
        return r;
    if (results_dequeue(&client->results, &answer.result)) {
        sized_give(ret, &answer.result, sizeof(answer.result));
        return 0;
    }
    for (;;) {
        bool over = client->carrier.over;

        r = answer_next(client, &answer);
        if (r == 0) {
            sized_give(ret, &answer.result, sizeof(answer.result));
            return 0;
        }
        if (r < 0 || over)
            return r < 0 ? r : -EPIPE;
        if (left == 0) {
            client->carrier.over = hung_up(client);
            if (!client->carrier.over)
                return -EAGAIN;
            continue;
        }
        if (deadline == 0)
            deadline = clock_deadline(timeout_usec);
        client->carrier.channel.wakeable = true;
        r = rest(client, left);
        client->carrier.channel.wakeable = false;
        if (r < 0 && r != -ETIMEDOUT)
            return r;
        left = clock_left(deadline);
    }
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

/* ---- event loops and other threads ---- */

_public_ int troupe_client_fd(struct troupe_client *client)
{
    return carrier_fd(&client->carrier, client->socket, EPOLLIN);
}

_public_ uint64_t troupe_client_timeout(const struct troupe_client *client)
{
    return client->actor.silence_at;
}

_public_ int troupe_client_process(struct troupe_client *client)
{
    struct channel *channel = &client->carrier.channel;
    int r;

    channel_end_sleep(channel);
    r = troupe_actor_turn(&client->actor, 0);
    if (r > 0 || client->results.first)
        return 1;
    if (r < 0)
        return r;
    channel->wakeable = true;
    r = client_arm(client);
    channel->wakeable = false;
    return r != 0 || client->carrier.over;
}

_public_ void troupe_client_wake(struct troupe_client *client)
{
    channel_wake_self(&client->carrier.channel);
}
