/* SPDX-License-Identifier: MIT */
/*
 * A library to preload: writes to history.db and its log hang while the file $HANGING_HISTORY
 * exists. One that hangs makes the file $HANGING_HISTORY-hangs.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_history(int fd)
{
    char link[64], path[4096];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = '\0';
    return strstr(path, "/history.db") != NULL;
}

static void hang(int fd)
{
    const char *path = getenv("HANGING_HISTORY");
    char mark[4096];

    if (!path || access(path, F_OK) < 0 || !is_history(fd))
        return;
    (void)snprintf(mark, sizeof(mark), "%s-hangs", path);
    (void)close(open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    while (access(path, F_OK) == 0)
        (void)poll(NULL, 0, 1);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    hang(fd);
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite64(fd, data, size, offset);
}
