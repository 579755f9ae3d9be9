/* SPDX-License-Identifier: MIT */
#include "shared/base/standard.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>

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
