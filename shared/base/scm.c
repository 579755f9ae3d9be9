/* SPDX-License-Identifier: MIT */
#include "shared/base/scm.h"

#include "shared/base/fault.h"
#include "shared/base/uapi.h"
#include <errno.h>
#include <string.h>

void scm_attach(struct msghdr *message, union scm_control *control, const int *fds, size_t n_fds)
{
    const size_t size = n_fds * sizeof(int);

    memset(control, 0, CMSG_SPACE(size));
    control->header.cmsg_len = CMSG_LEN(size);
    control->header.cmsg_level = SOL_SOCKET;
    control->header.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&control->header), fds, size);
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(size);
}

ssize_t scm_send(int socket, struct iovec data, const int *fds, size_t n_fds, int flags)
{
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = data.iov_base != NULL};
    union scm_control control;

    if (n_fds > 0)
        scm_attach(&message, &control, fds, n_fds);
    return sendmsg(socket, &message, flags);
}

ssize_t scm_receive(int fd, struct msghdr *message, int flags)
{
    const size_t room = message->msg_controllen;
    ssize_t n = recvmsg(fd, message, flags);

    if (n >= 0 || errno != ECONNRESET)
        return n;
    message->msg_controllen = room;
    return recvmsg(fd, message, flags);
}

size_t scm_take(struct msghdr *message, int *fds, size_t max, void (*drop)(int fd))
{
    size_t n = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= at->cmsg_len; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(at) + i * sizeof(fd), sizeof(fd));
            if (n++ < max)
                fds[n - 1] = fd;
            else
                drop(fd);
        }
    }
    return n;
}

/* Makes out-of-band bytes arrive in line. Otherwise recvmsg() drops such a byte at the head of the
 * stream, with its descriptors, while MSG_PEEK skips it. */
static void receive_in_line(int fd)
{
    (void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &(int){1}, sizeof(int));
}

bool scm_refuse(int fd)
{
    if (fault_inject("passrights") == 0 &&
        setsockopt(fd, SOL_SOCKET, TROUPE_SO_PASSRIGHTS, &(int){0}, sizeof(int)) == 0)
        return true;
    receive_in_line(fd);
    return false;
}

bool scm_refuses(int fd)
{
    int passes = 1;
    socklen_t size = sizeof(passes);

    if (getsockopt(fd, SOL_SOCKET, TROUPE_SO_PASSRIGHTS, &passes, &size) == 0 && passes == 0)
        return true;
    receive_in_line(fd);
    return false;
}

bool scm_is_stream(int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

int scm_look(int fd, void *buffer, size_t *size)
{
    struct iovec vector = {.iov_base = buffer, .iov_len = *size};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_PEEK);

    if (n < 0)
        return -errno;
    if (message.msg_flags & MSG_CTRUNC)
        return SCM_E_DESCRIPTORS;
    *size = (size_t)n;
    return 0;
}
