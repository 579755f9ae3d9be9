/* SPDX-License-Identifier: MIT */
#include "shared/base/scm.h"

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
