/* SPDX-License-Identifier: MIT */
#include "worker/client/client.h"

#include "shared/base/cleanup.h"
#include "worker/base/sized.h"
#include "worker/client/connect.h"
#include "worker/public.h"
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

_public_ int troupe_client_connect(struct troupe_client **ret, const char *socket_path)
{
    struct connection connection = CONNECTION_NULL;
    struct troupe_client *client;
    int r;

    r = connection_open(&connection, socket_path);
    if (r < 0)
        return r;
    client = malloc(sizeof(*client));
    if (!client) {
        connection_deinit(&connection);
        return -ENOMEM;
    }
    *client = (struct troupe_client){.channel = CHANNEL_NULL, .poll_fd = -1, .blob = BLOB_NULL};
    r = channel_open(&client->channel, &connection.fds);
    if (r < 0) {
        free(client);
        connection_deinit(&connection);
        return r;
    }
    channel_close_fds(&client->channel);
    client->socket = connection.socket;
    client->control = connection.control;
    memcpy(client->address, connection.address, sizeof(client->address));
    client->inline_max = client->channel.theirs.header->inline_max;
    client->results.largest = client->channel.theirs.ring_size;
    client_carry(client);
    *ret = client;
    return 0;
}

_public_ void troupe_client_free(struct troupe_client *client)
{
    if (!client)
        return;
    blob_deinit(&client->blob);
    actor_deinit(&client->actor);
    results_deinit(&client->results);
    pending_deinit(&client->pending);
    channel_deinit(&client->channel);
    close_fd(client->poll_fd);
    close_fd(client->control);
    close_fd(client->socket);
    free(client);
}

_public_ void troupe_client_flush(struct troupe_client *client)
{
    channel_publish(&client->channel);
    client->unpublished = 0;
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
        {.fd = client->channel.wait_fd, .events = POLLIN},
        {.fd = client->socket, .events = POLLIN},
    };
    struct timespec limit = usec_to_timespec(timeout);
    int r;

    r = ppoll(pollers, ELEMENTS(pollers), timeout == USEC_INFINITY ? NULL : &limit, NULL);
    if (r < 0)
        return -errno;
    if (pollers[1].revents != 0 && !ring_pending(&client->channel.in) && hung_up(client))
        client->over = true;
    return r == 0 ? -ETIMEDOUT : 0;
}

int client_arm(struct troupe_client *client)
{
    bool woken;

    troupe_client_flush(client);
    channel_release(&client->channel);
    client->unreleased = 0;
    if (!channel_arm(&client->channel, &woken))
        return woken ? -EINTR : 1;
    if (!actor_control_changed(&client->actor))
        return 0;
    channel_end_sleep(&client->channel);
    return 1;
}

int client_sleep(struct troupe_client *client, usec_t timeout)
{
    int r;

    if (timeout > 0) {
        troupe_client_flush(client);
        if (channel_spin(&client->channel))
            return 0;
    }
    r = client_arm(client);
    if (r != 0)
        return r < 0 ? r : 0;
    r = poll_both(client, timeout);
    channel_end_sleep(&client->channel);
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
        bool over = client->over;
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
            client->over = true;
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
        client->over = true;
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

    if (client->over)
        return -EPIPE;
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

    if (client->over)
        return -EPIPE;
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
    if (client->over)
        return -EPIPE;
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

    if (client->over)
        return -EPIPE;
    r = request_by_id(client, PROTOCOL_CANCEL, id, 0, true, &number);
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

    return client->over ? -EPIPE : request_submit(client, &job, &number);
}

_public_ int troupe_client_wait(struct troupe_client *client, const char *id, uint64_t cookie)
{
    uint64_t number;

    if (client->over)
        return -EPIPE;
    return request_by_id(client, PROTOCOL_WAIT, id, cookie, false, &number);
}

_public_ int troupe_client_next(struct troupe_client *client, struct troupe_result *ret,
                                uint64_t timeout_usec)
{
    usec_t deadline = USEC_INFINITY, left = timeout_usec;
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
        bool over = client->over;

        r = answer_next(client, &answer);
        if (r == 0) {
            sized_give(ret, &answer.result, sizeof(answer.result));
            return 0;
        }
        if (r < 0 || over)
            return r < 0 ? r : -EPIPE;
        if (left == 0) {
            client->over = hung_up(client);
            if (!client->over)
                return -EAGAIN;
            continue;
        }
        if (left != USEC_INFINITY && deadline == USEC_INFINITY)
            deadline = usec_add(clock_now(), left);
        client->channel.wakeable = true;
        r = rest(client, left);
        client->channel.wakeable = false;
        if (r < 0 && r != -ETIMEDOUT)
            return r;
        if (deadline != USEC_INFINITY)
            left = usec_sub(deadline, clock_now());
    }
}

_public_ int troupe_client_blob(struct troupe_client *client, size_t size, void **ret_data)
{
    int r;

    if (client->blob.fd >= 0)
        return -EALREADY;
    r = blob_new(&client->blob, size);
    if (r == 0)
        *ret_data = client->blob.data;
    return r;
}

_public_ void troupe_client_blob_drop(struct troupe_client *client)
{
    blob_deinit(&client->blob);
}
