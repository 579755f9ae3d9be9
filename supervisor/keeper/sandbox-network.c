/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-network.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void drop(int fd)
{
    close_fd(fd);
}

/* Returns a descriptor of its own, -EAGAIN if there is none, or -errno. An entry of the storage
 * stays there, so it is never empty again. */
static int copy(int storage)
{
    union scm_control control;
    struct msghdr header = {.msg_control = &control, .msg_controllen = sizeof(control)};
    int fd;
    if (recvmsg(storage, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
        return -errno;
    return scm_take(&header, &fd, 1, drop) == 1 ? fd : -EBADMSG;
}

/* Returns 0, -EAGAIN if the storage is empty, or -errno. */
static int enter(int storage)
{
    _cleanup_close_ int fd = copy(storage);
    if (fd < 0)
        return fd;
    return setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

/* Works without the loopback interface too, as far as the kernel is concerned. */
static void start_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
}

static int make_and_put(int storage)
{
    _cleanup_close_ int fd = -1;
    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    start_loopback();
    fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return scm_send(storage, (struct iovec){0}, &fd, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno
                                                                                         : 0;
}

/* The lock ends with the process, if not earlier: one that is killed here leaves the storage
 * empty. */
static int enter_or_make(const struct sandbox_network *network)
{
    struct flock lock = {.l_type = F_WRLCK};
    int r;
    if (fcntl(network->storage[0], F_SETLKW, &lock) < 0)
        return -errno;
    r = enter(network->storage[0]);
    if (r == -EAGAIN)
        r = make_and_put(network->storage[1]);
    lock.l_type = F_UNLCK;
    (void)fcntl(network->storage[0], F_SETLK, &lock);
    return r;
}

int sandbox_network_join(const struct sandbox_network *network)
{
    const int r = enter(network->storage[0]);
    return r == -EAGAIN ? enter_or_make(network) : r;
}
