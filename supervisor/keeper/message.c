/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/message.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- putting ---- */

static void put(struct message *message, const void *data, size_t size)
{
    if (message->error == 0 && size > sizeof(message->data) - message->size)
        message->error = -E2BIG;
    if (message->error < 0)
        return;
    if (size > 0)
        memcpy(message->data + message->size, data, size);
    message->size += size;
}

#define PUT(message, value) put(message, &(value), sizeof(value))

static void put_count(struct message *message, size_t n, size_t max)
{
    const uint32_t count = (uint32_t)n;
    if (n > max && message->error == 0)
        message->error = -E2BIG;
    PUT(message, count);
}

static void put_string(struct message *message, const char *string)
{
    put(message, string, strlen(string) + 1);
}

static size_t put_strings(struct message *message, char *const *strings, size_t max)
{
    size_t n = 0;
    while (strings[n])
        n++;
    put_count(message, n, max);
    for (size_t i = 0; i < n && message->error == 0; i++)
        put_string(message, strings[i]);
    return n;
}

static void put_fd(struct message *message, int fd)
{
    if (message->n_fds == MESSAGE_FDS_MAX)
        message->error = message->error == 0 ? -E2BIG : message->error;
    else
        message->fds[message->n_fds++] = fd;
}

static void begin(struct message *message, enum message_kind kind, uint64_t id)
{
    const uint32_t number = kind;
    message->size = message->taken = message->n_fds = 0;
    message->error = 0;
    PUT(message, number);
    PUT(message, id);
}

static void put_descriptors(struct message *message, const struct spawn_options *options)
{
    const bool has_cgroup = options->cgroup_fd >= 0;
    put_fd(message, options->report_fd);
    PUT(message, has_cgroup);
    if (has_cgroup)
        put_fd(message, options->cgroup_fd);
    put_count(message, options->n_fds, SPAWN_FDS_MAX);
    for (size_t i = 0; i < options->n_fds && message->error == 0; i++) {
        put_fd(message, options->fds[i].fd);
        PUT(message, options->fds[i].number);
    }
}

int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options)
{
    begin(message, MESSAGE_SPAWN, id);
    size_t n = put_strings(message, options->argv, MESSAGE_STRINGS_MAX);
    if (message->error == 0)
        (void)put_strings(message, options->environment, MESSAGE_STRINGS_MAX - n);
    put_string(message, options->working_directory ? options->working_directory : "/");
    put_descriptors(message, options);
    put_count(message, options->n_rlimits, SPAWN_RLIMITS_MAX);
    put(message, options->rlimits, options->n_rlimits * sizeof(options->rlimits[0]));
    PUT(message, options->set_user);
    PUT(message, options->uid);
    PUT(message, options->gid);
    put_count(message, options->n_groups, SPAWN_GROUPS_MAX);
    put(message, options->groups, options->n_groups * sizeof(options->groups[0]));
    PUT(message, options->set_nice);
    PUT(message, options->nice);
    PUT(message, options->set_oom_score_adjust);
    PUT(message, options->oom_score_adjust);
    return message->error;
}

int message_put_kill(struct message *message, const struct message_kill *kill)
{
    begin(message, MESSAGE_KILL, kill->id);
    PUT(message, kill->pid);
    return message->error;
}

int message_put_spawned(struct message *message, const struct message_spawned *spawned, int pidfd)
{
    begin(message, MESSAGE_SPAWNED, spawned->id);
    PUT(message, spawned->pid);
    PUT(message, spawned->error);
    if (pidfd >= 0)
        put_fd(message, pidfd);
    return message->error;
}

int message_put_exited(struct message *message, const struct message_exited *exited)
{
    begin(message, MESSAGE_EXITED, exited->id);
    PUT(message, exited->how);
    return message->error;
}

/* ---- taking ---- */

static void take(struct message *message, void *ret, size_t size)
{
    if (message->error == 0 && size > message->size - message->taken)
        message->error = -EBADMSG;
    if (message->error < 0) {
        memset(ret, 0, size);
        return;
    }
    memcpy(ret, message->data + message->taken, size);
    message->taken += size;
}

#define TAKE(message, variable) take(message, &(variable), sizeof(variable))

static size_t take_count(struct message *message, size_t max)
{
    uint32_t count;
    TAKE(message, count);
    if (count > max && message->error == 0)
        message->error = -EBADMSG;
    return message->error == 0 ? count : 0;
}

/* Takes a byte: a bool must not hold anything but 0 or 1. */
static bool take_bool(struct message *message)
{
    uint8_t byte;
    TAKE(message, byte);
    return byte != 0;
}

static char *take_string(struct message *message)
{
    char *string = (char *)message->data + message->taken;
    const char *end =
        message->error == 0 ? memchr(string, '\0', message->size - message->taken) : NULL;
    if (!end) {
        message->error = -EBADMSG;
        return NULL;
    }
    message->taken += (size_t)(end - string) + 1;
    return string;
}

static size_t take_strings(struct message *message, char **strings, size_t max)
{
    size_t n = take_count(message, max);
    for (size_t i = 0; i < n; i++)
        strings[i] = take_string(message);
    strings[n] = NULL;
    return n;
}

/* Returns descriptor number `*i`, and increments it. */
static int take_fd(struct message *message, size_t *i)
{
    if (*i < message->n_fds)
        return message->fds[(*i)++];
    message->error = -EBADMSG;
    return -1;
}

static void take_descriptors(struct message *message, struct message_spawn *ret)
{
    size_t i = 0;
    ret->options.report_fd = take_fd(message, &i);
    ret->options.cgroup_fd = take_bool(message) ? take_fd(message, &i) : -1;
    ret->options.fds = ret->fds;
    ret->options.n_fds = take_count(message, SPAWN_FDS_MAX);
    for (size_t at = 0; at < ret->options.n_fds; at++) {
        ret->fds[at].fd = take_fd(message, &i);
        TAKE(message, ret->fds[at].number);
    }
    if (i != message->n_fds)
        message->error = -EBADMSG;
}

unsigned message_take_kind(struct message *message)
{
    uint32_t kind;
    message->taken = 0;
    message->error = 0;
    TAKE(message, kind);
    return kind;
}

static int end(struct message *message)
{
    if (message->error == 0 && message->taken != message->size)
        message->error = -EBADMSG;
    return message->error;
}

int message_take_spawn(struct message *message, struct message_spawn *ret)
{
    struct spawn_options *options = &ret->options;
    TAKE(message, ret->id);
    size_t n = take_strings(message, ret->strings, MESSAGE_STRINGS_MAX);
    options->argv = ret->strings;
    options->environment = ret->strings + n + 1;
    (void)take_strings(message, ret->strings + n + 1, MESSAGE_STRINGS_MAX - n);
    options->working_directory = take_string(message);
    take_descriptors(message, ret);
    options->rlimits = ret->rlimits;
    options->n_rlimits = take_count(message, SPAWN_RLIMITS_MAX);
    take(message, ret->rlimits, options->n_rlimits * sizeof(ret->rlimits[0]));
    options->set_user = take_bool(message);
    TAKE(message, options->uid);
    TAKE(message, options->gid);
    options->groups = ret->groups;
    options->n_groups = take_count(message, SPAWN_GROUPS_MAX);
    take(message, ret->groups, options->n_groups * sizeof(ret->groups[0]));
    options->set_nice = take_bool(message);
    TAKE(message, options->nice);
    options->set_oom_score_adjust = take_bool(message);
    TAKE(message, options->oom_score_adjust);
    if (!ret->strings[0])
        message->error = -EBADMSG;
    return end(message);
}

int message_take_kill(struct message *message, struct message_kill *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    return end(message);
}

int message_take_spawned(struct message *message, struct message_spawned *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->pid);
    TAKE(message, ret->error);
    return end(message);
}

int message_take_exited(struct message *message, struct message_exited *ret)
{
    TAKE(message, ret->id);
    TAKE(message, ret->how);
    return end(message);
}

/* ---- the channel ---- */

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
};

int message_send(int fd, const struct message *message)
{
    union control control = {0};
    struct iovec iovec = {.iov_base = (void *)(uintptr_t)message->data, .iov_len = message->size};
    struct msghdr header = {.msg_iov = &iovec, .msg_iovlen = 1};
    const size_t size = message->n_fds * sizeof(int);
    if (size > 0) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        *rights = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(rights), message->fds, size);
    }
    ssize_t n;
    do
        n = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    return errno == ENOMEM || errno == ETOOMANYREFS ? -ENOBUFS : -errno;
}

static void collect_fds(struct message *message, struct msghdr *header)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(message->fds, CMSG_DATA(at), n * sizeof(int));
        message->n_fds = n;
    }
}

int message_receive(int fd, struct message *message)
{
    union control control;
    struct iovec iovec = {.iov_base = message->data, .iov_len = sizeof(message->data)};
    struct msghdr header = {.msg_iov = &iovec,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control)};
    ssize_t n;
    message->n_fds = 0;
    do
        n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    if (n == 0)
        return -EPIPE;
    message->size = (size_t)n;
    collect_fds(message, &header);
    return header.msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

void message_close_fds(struct message *message)
{
    for (size_t i = 0; i < message->n_fds; i++)
        close_fd(message->fds[i]);
    message->n_fds = 0;
}
