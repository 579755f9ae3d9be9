/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-network.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

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

int sandbox_network_join(const struct sandbox_namespace *network)
{
    return sandbox_namespace_join(network, CLONE_NEWNET, make);
}
