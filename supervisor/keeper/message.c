/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/message.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "supervisor/keeper/message-private.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- putting ---- */

void message_put(struct message *message, const void *data, size_t size)
{
    if (message->error == 0 && size > sizeof(message->data) - message->size)
        message->error = -E2BIG;
    if (message->error < 0)
        return;
    if (size > 0)
        memcpy(message->data + message->size, data, size);
    message->size += size;
}

void message_put_count(struct message *message, size_t n, size_t max)
{
    const uint32_t count = (uint32_t)n;
    if (n > max && message->error == 0)
        message->error = -E2BIG;
    PUT(message, count);
}

void message_put_fd(struct message *message, int fd)
{
    if (message->n_fds == MESSAGE_FDS_MAX)
        message->error = message->error == 0 ? -E2BIG : message->error;
    else
        message->fds[message->n_fds++] = fd;
}

void message_begin(struct message *message, enum message_kind kind, uint64_t id)
{
    const uint32_t number = kind;
    message->size = message->taken = message->n_fds = 0;
    message->error = 0;
    PUT(message, number);
    PUT(message, id);
}

/* ---- taking ---- */

const void *message_skip(struct message *message, size_t size)
{
    const void *data = message->data + message->taken;
    if (message->error == 0 && size > message->size - message->taken)
        message->error = -EBADMSG;
    if (message->error < 0)
        return NULL;
    message->taken += size;
    return data;
}

void message_take(struct message *message, void *ret, size_t size)
{
    const void *data = message_skip(message, size);
    if (data)
        memcpy(ret, data, size);
    else
        memset(ret, 0, size);
}

size_t message_take_count(struct message *message, size_t max)
{
    uint32_t count;
    TAKE(message, count);
    if (count > max && message->error == 0)
        message->error = -EBADMSG;
    return message->error == 0 ? count : 0;
}

bool message_take_bool(struct message *message)
{
    uint8_t byte;
    TAKE(message, byte);
    return byte != 0;
}

int message_take_fd(struct message *message, size_t *i)
{
    if (*i < message->n_fds)
        return message->fds[(*i)++];
    message->error = -EBADMSG;
    return -1;
}

unsigned message_take_kind(struct message *message)
{
    uint32_t kind;
    message->taken = 0;
    message->error = 0;
    TAKE(message, kind);
    return kind;
}

int message_end(struct message *message)
{
    if (message->error == 0 && message->taken != message->size)
        message->error = -EBADMSG;
    return message->error;
}

void message_put_holding(struct message *message, const struct message_hold *hold)
{
    PUT(message, hold->pid);
    message_put_count(message, hold->size, HOLD_BYTES_MAX);
    message_put(message, hold->bytes, hold->size);
    message_put_count(message, hold->n_fds, HOLD_FDS_MAX);
    for (size_t i = 0; i < hold->n_fds && message->error == 0; i++)
        message_put_fd(message, hold->fds[i]);
}

/* The message's first descriptors are those that are held. */
void message_take_holding(struct message *message, struct message_hold *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    ret->size = message_take_count(message, HOLD_BYTES_MAX);
    ret->bytes = message_skip(message, ret->size);
    ret->n_fds = message_take_count(message, HOLD_FDS_MAX);
    ret->fds = message->fds;
}

/* Checks that there are as many descriptors. */
int message_end_with_fds(struct message *message, size_t n)
{
    if (message->n_fds != n && message->error == 0)
        message->error = -EBADMSG;
    return message_end(message);
}

/* ---- the channel ---- */

int message_send(int fd, const struct message *message)
{
    union scm_control control;
    struct iovec iovec = {.iov_base = (void *)(uintptr_t)message->data, .iov_len = message->size};
    struct msghdr header = {.msg_iov = &iovec, .msg_iovlen = 1};
    if (message->n_fds > 0)
        scm_attach(&header, &control, message->fds, message->n_fds);
    ssize_t n;
    do
        n = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    return errno == ENOMEM || errno == ETOOMANYREFS ? -ENOBUFS : -errno;
}

static void drop(int fd)
{
    close_fd(fd);
}

int message_receive(int fd, struct message *message)
{
    union scm_control control;
    struct iovec iovec = {.iov_base = message->data, .iov_len = sizeof(message->data)};
    struct msghdr header = {.msg_iov = &iovec,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    ssize_t n;
    message->n_fds = 0;
    do
        n = scm_receive(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    if (n == 0)
        return -EPIPE;
    message->size = (size_t)n;
    message->n_fds = scm_take(&header, message->fds, MESSAGE_FDS_MAX, drop);
    if (message->n_fds > MESSAGE_FDS_MAX)
        message->n_fds = MESSAGE_FDS_MAX;
    return header.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

void message_close_fds(struct message *message)
{
    for (size_t i = 0; i < message->n_fds; i++)
        (void)close_fd(message->fds[i]);
    message->n_fds = 0;
}
