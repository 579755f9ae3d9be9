/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-network.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

/* Returns the descriptor, -EAGAIN if there is none, or -errno. */
static int take(int storage)
{
    union control control = {0};
    struct msghdr header = {.msg_control = &control, .msg_controllen = sizeof(control)};
    int fd;
    if (recvmsg(storage, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
        return -errno;
    const struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    if (!rights || rights->cmsg_type != SCM_RIGHTS)
        return -EBADMSG;
    memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
    return fd;
}

static int put(int storage, int fd)
{
    union control control = {0};
    struct msghdr header = {.msg_control = &control, .msg_controllen = sizeof(control)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    *rights = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
    return sendmsg(storage, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Works without the loopback interface too, as far as the kernel is concerned. */
static void start_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)ioctl(fd, SIOCSIFFLAGS, &request);
}

static int make(void)
{
    int fd;
    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    start_loopback();
    fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int enter(int network)
{
    return setns(network, CLONE_NEWNET) < 0 ? -errno : 0;
}

/* The lock ends with the process, if not earlier: one that is killed here leaves an empty
 * storage. */
int sandbox_network_join(const struct sandbox_network *network)
{
    struct flock lock = {.l_type = F_WRLCK};
    _cleanup_close_ int fd = -1;
    int r = 0;
    if (fcntl(network->storage[0], F_SETLKW, &lock) < 0)
        return -errno;
    fd = take(network->storage[0]);
    if (fd == -EAGAIN)
        fd = make();
    else if (fd >= 0)
        r = enter(fd);
    if (fd < 0)
        return fd;
    if (r == 0)
        r = put(network->storage[1], fd);
    lock.l_type = F_UNLCK;
    (void)fcntl(network->storage[0], F_SETLK, &lock);
    return r;
}
