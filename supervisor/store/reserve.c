/* SPDX-License-Identifier: MIT */
#include "supervisor/store/reserve.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int reserve_make(const char *path)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return -errno;
    r = posix_fallocate(fd, 0, RESERVE_SIZE);
    if (r != 0)
        reserve_give_up(path);
    return -r;
}

void reserve_give_up(const char *path)
{
    (void)unlink(path);
}
