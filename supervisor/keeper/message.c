/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/message.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The size of a record without `bytes`. */
#define RECORD_SIZE offsetof(struct message_record, bytes)

struct message_record *message_begin(struct message *message, enum message_kind kind, uint64_t id)
{
    message->size = RECORD_SIZE;
    message->n_fds = 0;
    message->error = 0;
    memset(&message->record, 0, RECORD_SIZE);
    message->record.kind = kind;
    message->record.id = id;
    return &message->record;
}

void message_put_fd(struct message *message, int fd)
{
    if (message->n_fds < MESSAGE_FDS_MAX)
        message->fds[message->n_fds++] = fd;
    else if (message->error == 0)
        message->error = -E2BIG;
}

int message_put_held(struct message *message, const void *bytes, size_t size, const int *fds,
                     size_t n_fds)
{
    if (size > HOLD_BYTES_MAX || n_fds > HOLD_FDS_MAX)
        return -E2BIG;
    if (size > 0)
        memcpy(message->record.bytes, bytes, size);
    message->record.size = (uint16_t)size;
    message->record.n_fds = (uint8_t)n_fds;
    message->size = RECORD_SIZE + size;
    for (size_t i = 0; i < n_fds; i++)
        message_put_fd(message, fds[i]);
    return 0;
}

unsigned message_kind_of(const struct message *message)
{
    const struct message_record *record = &message->record;
    if (message->size < RECORD_SIZE)
        return 0;
    if (record->kind == MESSAGE_SPAWN)
        return MESSAGE_SPAWN;
    return record->size <= HOLD_BYTES_MAX && message->size == RECORD_SIZE + record->size
               ? record->kind
               : 0;
}

int message_take_spawn_head(struct message *message, struct message_spawn *ret)
{
    const struct message_record *record = &message->record;
    const bool has_cgroup = record->has_cgroup != 0;
    if (record->id == 0 || record->output >= message->n_fds || message->n_fds <= has_cgroup)
        return -EBADMSG;
    ret->options.private_pids = record->private_pids != 0;
    ret->options.pipe_output = record->pipe_output != 0;
    ret->options.output_owner = (uint32_t)record->pid;
    ret->options.report_fd = message->fds[0];
    ret->options.cgroup_fd = has_cgroup ? message->fds[1] : -1;
    return 0;
}

/* ---- the channel ---- */

int message_send(int fd, const struct message *message)
{
    const struct iovec data = {.iov_base = (void *)(uintptr_t)message->data,
                               .iov_len = message->size};
    ssize_t n;
    do
        n = scm_send(fd, data, message->fds, message->n_fds, MSG_DONTWAIT | MSG_NOSIGNAL);
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
    struct msghdr header = SCM_MESSAGE(&iovec, &control);
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
