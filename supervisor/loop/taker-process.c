/* SPDX-License-Identifier: MIT */

/* The taker's own process. It holds only the descriptors that it was asked to take, and answers
 * before it closes any: a close may block as long as their sender likes. */

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "shared/base/uapi.h"
#include "supervisor/loop/taker-request.h"
#include "supervisor/loop/taker.h"
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define SUPERVISOR STDIN_FILENO
/* How many sockets one process holds before another takes its place. */
#define HELD_MAX 8192

/* A message with all its descriptors. There is room for as many as a message can carry: the kernel
 * would close the others before the taker answers. */
struct taken {
    ssize_t size; /* of the message, cut to `bytes`; -errno */
    int flags;
    bool has_control;
    uint64_t bytes;
    size_t n_fds;
    int fds[SCM_FDS_MAX];
};

static void drop(int fd)
{
    (void)close(fd);
}

/* A notification may name its sender by a descriptor. */
static void drop_sender(struct msghdr *message)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        int pidfd = -1;

        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == TROUPE_SCM_PIDFD &&
            at->cmsg_len == CMSG_LEN(sizeof(pidfd)))
            memcpy(&pidfd, CMSG_DATA(at), sizeof(pidfd));
        if (pidfd >= 0) /* else an error */
            drop(pidfd);
    }
}

static void take(int socket, struct taken *ret)
{
    union {
        union scm_control fds;
        char bytes[sizeof(union scm_control) + CMSG_SPACE(sizeof(struct ucred)) +
                   CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &ret->bytes, .iov_len = sizeof(ret->bytes)};
    struct msghdr message = SCM_MESSAGE(&part, &control);

    ret->n_fds = 0;
    ret->size = scm_receive(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (ret->size < 0) {
        ret->size = -errno;
        return;
    }
    ret->flags = message.msg_flags;
    ret->has_control = message.msg_controllen > 0;
    ret->n_fds = scm_take(&message, ret->fds, SCM_FDS_MAX, drop);
    drop_sender(&message);
}

static void close_taken(const struct taken *taken)
{
    for (size_t i = 0; i < taken->n_fds && i < SCM_FDS_MAX; i++)
        drop(taken->fds[i]);
}

/* Only files in memory have seals. F_GET_SEALS does not ask the file system, which may hang. */
static bool is_memfd(int fd)
{
    return fcntl(fd, F_GET_SEALS) >= 0;
}

static int check(const struct taken *taken)
{
    if (taken->size < 0)
        return taken->size == -EINTR || taken->size == -ENOMEM ? (int)taken->size : -EPROTO;
    /* The buffer had room for all, so none arrived because this process is out of descriptors. */
    if (taken->n_fds == 0 && (taken->flags & MSG_CTRUNC))
        return -EMFILE;
    if (taken->n_fds != 1 || taken->size != sizeof(taken->bytes) ||
        (taken->flags & (MSG_TRUNC | MSG_CTRUNC)) || !is_memfd(taken->fds[0]))
        return -EPROTO;
    return 0;
}

static void answer(const struct taker_answer *answer, const int *fd)
{
    const struct iovec data = {.iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof(*answer)};

    if (scm_send(SUPERVISOR, data, fd, fd != NULL, MSG_NOSIGNAL) < 0)
        _exit(0); /* the supervisor has abandoned this process */
}

static void receive(int socket, bool wanted)
{
    struct taker_answer result = {0};
    struct taken taken;

    take(socket, &taken);
    if (wanted)
        result.result = check(&taken);
    else if (taken.size < 0)
        result.result = (int32_t)taken.size;
    result.is_done = taken.n_fds == 0 || (wanted && result.result == 0);
    result.serial = taken.bytes;
    answer(&result, wanted && result.result == 0 ? taken.fds : NULL);
    close_taken(&taken);
    if (!result.is_done)
        answer(&(struct taker_answer){.is_done = true}, NULL);
}

int taker_drop_message(int socket)
{
    struct taken taken;

    take(socket, &taken);
    close_taken(&taken);
    return taken.size < 0 ? (int)taken.size : 0;
}

void taker_drain(int socket)
{
    const bool stream = scm_is_stream(socket);
    struct taken taken;

    (void)shutdown(socket, SHUT_RDWR); /* unless the supervisor has done that */
    /* With credentials, a message without bytes differs from the end of the socket. */
    if (!stream)
        (void)setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
    do {
        take(socket, &taken);
        close_taken(&taken);
    } while (taken.size > 0 || taken.size == -EINTR ||
             (taken.size == 0 && !stream && taken.has_control));
}

static bool next_request(struct taker_request *ret, int *ret_fd)
{
    union scm_control control;
    struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr message = SCM_MESSAGE(&part, &control);
    ssize_t n;

    do
        n = recvmsg(SUPERVISOR, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *ret_fd = -1;
    return n == (ssize_t)sizeof(*ret) && scm_take(&message, ret_fd, 1, drop) == 1;
}

/* Returns how many sockets this process may hold. */
static rlim_t most_held(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > HELD_MAX
               ? HELD_MAX
               : limit.rlim_cur / 2;
}

int taker_run(void)
{
    struct taker_request request;
    rlim_t n_held = 0;
    int fd;

    /* execveat(2) names the process after the descriptor. */
    (void)prctl(PR_SET_NAME, "trouped-taker");
    while (next_request(&request, &fd)) {
        if (request.kind == TAKER_HOLD) {
            if (++n_held < most_held())
                continue;
            break;
        }
        if (request.kind != TAKER_DRAIN) {
            receive(fd, request.kind == TAKER_RECEIVE);
            (void)close(fd); /* not the last close: the supervisor also has it */
            continue;
        }
        taker_drain(fd);
        (void)close(fd);
        answer(&(struct taker_answer){.is_done = true}, NULL);
    }
    (void)close(SUPERVISOR); /* first: the others may block */
    return 0;
}
