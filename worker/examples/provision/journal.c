/* SPDX-License-Identifier: MIT */
#include "worker/examples/provision/journal.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void journal_write(const char *path, const char *format, ...)
{
    va_list arguments;
    char line[512];
    int fd, n;

    if (!path)
        return;
    va_start(arguments, format);
    n = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    /* In one piece, so that lines of other processes come before or after it. */
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        perror("provision: journal");
    if (fd >= 0)
        close(fd);
}
