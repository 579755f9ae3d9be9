/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors in the messages of Unix sockets (SCM_RIGHTS). */

#include <stdbool.h>
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

/* Initializes a struct msghdr to receive into one struct iovec and `control`. */
#define SCM_MESSAGE(part, control)                                                                 \
    {                                                                                              \
        .msg_iov = (part), .msg_iovlen = 1, .msg_control = (control),                              \
        .msg_controllen = sizeof(*(control))                                                       \
    }

/* Attaches the descriptors, which the caller keeps, to `message`. Fills in `control`. */
void scm_attach(struct msghdr *message, union scm_control *control, const int *fds, size_t n_fds);

/* Sends bytes and descriptors, which the caller keeps. Returns like sendmsg(). */
ssize_t scm_send(int socket, struct iovec data, const int *fds, size_t n_fds, int flags);

/* Like recvmsg(), but if the peer has closed its socket with unread data in it, returns the data
 * that the peer sent instead of a first ECONNRESET. */
ssize_t scm_receive(int fd, struct msghdr *message, int flags);

/* Copies the first `max` descriptors of a received message to `fds`, and passes the others to
 * `drop`. Returns how many there were. */
size_t scm_take(struct msghdr *message, int *fds, size_t max, void (*drop)(int fd));

/*
 * Functions for sockets that untrusted processes write to. Each message may carry descriptors, and
 * a process that receives it without room for them, or closes the socket with the message in it,
 * closes them, which may block as long as the sender likes (a pipe whose lock is held). Since
 * Linux 6.16 a socket can refuse descriptors (SO_PASSRIGHTS). For other sockets, call scm_look()
 * before receiving.
 */

enum {
    _SCM_E_SUCCESS,
    SCM_E_DESCRIPTORS,
};

/* Makes the socket, and sockets accepted from it, refuse messages with descriptors. Returns false
 * on older kernels, and then prepares the socket for scm_look(). */
bool scm_refuse(int fd);

/* Returns whether an accepted or inherited socket has refused descriptors from its beginning. If
 * not, prepares it for scm_look(). */
bool scm_refuses(int fd);

/* Returns whether `fd` is a stream socket. */
bool scm_is_stream(int fd);

/* Copies the next bytes of a stream socket to `buffer` without removing them: at most `*size`,
 * which becomes their number, 0 at the end of the stream. Receiving that many closes no descriptor.
 * Does not wait. Returns 0, SCM_E_DESCRIPTORS if these bytes carry descriptors, or -errno. */
int scm_look(int fd, void *buffer, size_t *size);
