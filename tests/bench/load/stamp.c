/* SPDX-License-Identifier: MIT */
#include "tests/bench/load/stamp.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define LIMIT_MS 30000

void stamp_write(enum stamp_kind kind)
{
    struct stamp stamp = {.kind = kind, .pid = (uint64_t)getpid(), .ns = samples_now()};
    const char *path = getenv(STAMP_VARIABLE);
    int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    if (write(fd, &stamp, sizeof(stamp)) < 0)
        return;
    (void)close(fd);
}

int stamp_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

int stamp_read(int fd, enum stamp_kind kind, struct stamp *ret)
{
    struct pollfd pollfd = {.fd = fd, .events = POLLIN};

    do {
        int r = poll(&pollfd, 1, LIMIT_MS);
        if (r <= 0)
            return r == 0 ? -ETIMEDOUT : -errno;
        if (read(fd, ret, sizeof(*ret)) != sizeof(*ret))
            return -EIO;
    } while (ret->kind != kind);
    return 0;
}
