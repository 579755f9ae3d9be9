/* SPDX-License-Identifier: MIT */
#include "shared/base/standard.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

int standard_open(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY);
        if (fd < 0)
            return -errno;
    } while (fd <= 2);
    close_fd(fd);
    return 0;
}

static void do_nothing(int signo)
{
}

/* With a handler, because execve(2) preserves "ignored". */
void standard_survive_file_limit(void)
{
    const struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};

    (void)sigaction(SIGXFSZ, &action, NULL);
}
