/* SPDX-License-Identifier: MIT */

/* Takes over the channel of a peer that has outlived the former supervisor. */

#include "supervisor/channel/endpoint-adopt.h"
#include "shared/base/scm.h"
#include "supervisor/channel/endpoint-private.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

size_t endpoint_held_fds(const struct endpoint *endpoint, int ret[ENDPOINT_HELD_FDS])
{
    const struct channel *channel = &endpoint->channel;
    const int fds[ENDPOINT_HELD_FDS] = {channel->mine.fd, channel->theirs.fd, endpoint->control,
                                        channel->wake_fd, channel->wait_fd};

    memcpy(ret, fds, sizeof(fds));
    return channel->wait_fd < 0 ? ENDPOINT_HELD_FDS - 1 : ENDPOINT_HELD_FDS;
}

int endpoint_fds_from_held(struct endpoint_fds *ret, const int *fds, size_t n)
{
    if (n != ENDPOINT_HELD_FDS && n != ENDPOINT_HELD_FDS - 1)
        return -EPROTO;
    *ret = (struct endpoint_fds){
        .channel = {.inbox = fds[0], .outbox = fds[1], .wait_fd = fds[3], .wake_fd = -1},
        .control = fds[2],
    };
    if (n == ENDPOINT_HELD_FDS)
        ret->channel.wake_fd = fds[4];
    return 0;
}

int endpoint_adopt(struct endpoint *endpoint, struct loop *loop,
                   const struct endpoint_adoption *adoption, const struct endpoint_handler *handler)
{
    struct channel channel;
    int r = channel_adopt(&channel, &adoption->fds.channel, loop_wake_backend(loop));

    if (r < 0)
        return r;
    channel_set_kept(&channel, adoption->kept);
    endpoint_set_up(endpoint, loop, handler, &channel, adoption->fds.control, adoption->blobs);
    endpoint->announcement.queue = adoption->announcements;
    /* All records that the peer has not consumed are between the gate and the tail. */
    endpoint->channel.out.head = atomic_load_explicit(endpoint->gate, memory_order_relaxed);
    endpoint->resumed = true;
    return 0;
}

static void on_room(void *userdata, uint32_t events)
{
    endpoint_hand_over(userdata);
}

static bool await_room(struct endpoint *endpoint)
{
    return endpoint_hands_over(endpoint) ||
           loop_watch_fd(endpoint->loop, &endpoint->hand_over_watch, endpoint->control, POLLOUT,
                         on_room, endpoint) == 0;
}

static void announce(struct endpoint *endpoint)
{
    channel_move(&endpoint->channel);
    if (endpoint->announcement.queue)
        task_queue(&endpoint->announcement);
    else
        channel_announce(&endpoint->channel);
}

void endpoint_on_announcement(struct task *task)
{
    channel_announce(&list_entry(task, struct endpoint, announcement)->channel);
}

void endpoint_hand_over(struct endpoint *endpoint)
{
    int r = payload_send_fd(endpoint->control, endpoint->channel.mine.fd, PAYLOAD_SERIAL_INBOX);

    if (r == -EAGAIN && await_room(endpoint))
        return;
    loop_unwatch(endpoint->loop, &endpoint->hand_over_watch);
    if (r == 0)
        announce(endpoint);
    else if (r != -EPIPE && r != -ECONNRESET) /* else the peer is gone */
        endpoint_break(endpoint, "cannot be given its next inbox");
    endpoint_close_memories(endpoint);
}

/* Reads the serial of the next descriptor, which stays in the socket. False = there is none. */
static bool peek_serial(const struct endpoint *endpoint, uint64_t *ret)
{
    struct iovec data = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

    return scm_receive(endpoint->control, &message, MSG_PEEK | MSG_DONTWAIT) ==
           (ssize_t)sizeof(*ret);
}

int endpoint_find_blob(struct endpoint *endpoint, uint64_t serial)
{
    uint64_t next;

    if (!endpoint->resumed)
        return 0;
    if (!peek_serial(endpoint, &next) || next > serial)
        return -ECONNRESET;
    endpoint->blobs_received = next - 1;
    endpoint->resumed = false;
    return 0;
}
