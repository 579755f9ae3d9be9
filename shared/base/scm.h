/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors in the messages of Unix sockets (SCM_RIGHTS). */

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* The kernel's maximum per message (SCM_MAX_FD), so a received message is never truncated. */
#define SCM_FDS_MAX 253

/* Room for the control data of a message. */
union scm_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(SCM_FDS_MAX * sizeof(int))];
};

/* Attaches the descriptors, which the caller keeps, to `message`. Fills in `control`. */
void scm_attach(struct msghdr *message, union scm_control *control, const int *fds, size_t n_fds);

/* recvmsg(). A peer that has closed its socket with something unread in it causes ECONNRESET once,
 * before what it sent; this returns what it sent. */
ssize_t scm_receive(int fd, struct msghdr *message, int flags);

/* Takes the first `max` descriptors of a received message into `fds`, and passes the others to
 * `drop`. Returns how many there were. */
size_t scm_take(struct msghdr *message, int *fds, size_t max, void (*drop)(int fd));
