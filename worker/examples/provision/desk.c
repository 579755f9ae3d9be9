/* SPDX-License-Identifier: MIT */
#include "worker/examples/provision/desk.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Reads a line; the part that does not fit is discarded. */
static int read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    char byte;

    for (;;) {
        ssize_t n = read(fd, &byte, 1);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
        if (byte == '\n')
            break;
        if (length + 1 < size)
            line[length++] = byte;
    }
    line[length] = '\0';
    return 0;
}

int desk_decide(const char *path, bool *ret_yes, char *reason, size_t reason_size)
{
    char line[200];
    int r, fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    r = read_line(fd, line, sizeof(line));
    close(fd);
    if (r < 0)
        return r;
    *ret_yes = strncmp(line, "no", 2) != 0;
    if (!*ret_yes)
        (void)snprintf(reason, reason_size, "%s", line[2] == ' ' ? line + 3 : "no reason given");
    return 0;
}
