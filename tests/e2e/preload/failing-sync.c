/* SPDX-License-Identifier: MIT */
/* A library to preload: fsync() and fdatasync() fail with EIO while the file $FAILING_SYNC exists.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sync_or_fail(long number, int fd)
{
    const char *path = getenv("FAILING_SYNC");

    if (path && access(path, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(number, fd);
}

int fsync(int fd)
{
    return sync_or_fail(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_or_fail(SYS_fdatasync, fd);
}
