/* SPDX-License-Identifier: MIT */

/* Shifts CLOCK_REALTIME by the seconds that the file $CLOCK_SHIFT holds, as if it were set. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
    const char *path = getenv("CLOCK_SHIFT");
    char text[32] = "";
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof(text) - 1) < 0)
        *text = '\0';
    close(fd);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
    int r = (int)syscall(SYS_clock_gettime, clock, at);

    if (r == 0 && clock == CLOCK_REALTIME)
        at->tv_sec += shift();
    return r;
}
