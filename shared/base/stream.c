/* SPDX-License-Identifier: MIT */
#include "shared/base/stream.h"

#include "shared/base/cleanup.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

/* Fills in the address of a socket. A path that is too long for an address is replaced by one
 * through /proc and the descriptor of its directory, which `*ret_directory` keeps open. */
static int make_address(const char *path, struct sockaddr_un *ret, int *ret_directory)
{
    const char *name = strrchr(path, '/');
    _cleanup_free_ char *directory = NULL;

    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) < sizeof(ret->sun_path)) {
        memcpy(ret->sun_path, path, strlen(path));
        return 0;
    }
    directory = name ? strndup(path, (size_t)(name + 1 - path)) : NULL;
    if (!directory)
        return name ? -ENOMEM : -ENAMETOOLONG;
    *ret_directory = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_directory < 0)
        return -errno;
    return snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d%s", *ret_directory,
                    name) < (int)sizeof(ret->sun_path)
               ? 0
               : -ENAMETOOLONG;
}

/* Bounds each wait for the other end. Returns 0 or -errno. */
static int set_timeout(int fd, usec_t timeout)
{
    const struct timeval limit = {.tv_sec = (time_t)(timeout / USEC_PER_SEC),
                                  .tv_usec = (suseconds_t)(timeout % USEC_PER_SEC)};

    if (timeout == USEC_INFINITY)
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
                   setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0
               ? -errno
               : 0;
}

int stream_connect(const char *path, usec_t timeout)
{
    _cleanup_close_ int fd = -1, directory = -1;
    struct sockaddr_un address;
    int r = make_address(path, &address, &directory);

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (timeout == 0 ? SOCK_NONBLOCK : 0), 0);
    if (fd < 0)
        return -errno;
    r = set_timeout(fd, timeout);
    if (r < 0)
        return r;
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        if (errno != EINTR)
            return errno == EAGAIN && timeout > 0 ? -ETIMEDOUT : -errno;
    return TAKE_FD(fd);
}

int stream_send(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        }
    }
    return 0;
}
