/* SPDX-License-Identifier: MIT */
#include "shared/ring/wake.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system call wants a plain pointer; it only ever reads the word, which may be mapped
 * read-only. */
static long futex(const _Atomic uint32_t *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    return syscall(SYS_futex, (uintptr_t)word, operation, value, timeout, NULL, 0);
}

int wake_futex_wait(const _Atomic uint32_t *word, uint32_t expected, usec_t timeout)
{
    struct timespec limit = usec_to_timespec(timeout);

    /* Not FUTEX_PRIVATE_FLAG: the other side is another process. */
    if (futex(word, FUTEX_WAIT, expected, timeout == USEC_INFINITY ? NULL : &limit) == 0)
        return 0;
    return errno == EAGAIN ? 0 : -errno;
}

int wake_futex_wake(const _Atomic uint32_t *word)
{
    return (int)futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

int wake_futex_wake_peer(const _Atomic uint32_t *word)
{
    return (int)futex(word, FUTEX_WAKE, WAKE_PEER_MAX, NULL);
}

int wake_eventfd_wait(int fd, int other, usec_t timeout)
{
    struct timespec limit = usec_to_timespec(timeout);
    struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    eventfd_t count;
    int r = ppoll(fds, 2, timeout == USEC_INFINITY ? NULL : &limit, NULL);

    if (r < 0)
        return -errno;
    if (r == 0)
        return -ETIMEDOUT;
    if ((fds[0].revents | fds[1].revents) & POLLNVAL)
        return -EBADF;
    if (other < 0)
        (void)eventfd_read(fd, &count);
    for (int i = 0; i < 2 && other >= 0; i++)
        if (fds[i].revents & POLLIN)
            wake_empty(fds[i].fd);
    return 0;
}

void wake_empty(int fd)
{
    eventfd_t count;

    /* An eventfd is empty after one read; in a socket each wake-up is a message. */
    while (read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
        ;
}

void wake_socket(int fd)
{
    static const eventfd_t one = 1;

    (void)send(fd, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void wake_eventfd_wake(int fd)
{
    (void)eventfd_write(fd, 1);
}
