/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/passrights.h"

#include "shared/base/fault.h"
#include "shared/base/uapi.h"
#include <sys/socket.h>

bool passrights_refuse(int fd)
{
    return fault_inject("passrights") == 0 &&
           setsockopt(fd, SOL_SOCKET, TROUPE_SO_PASSRIGHTS, &(int){0}, sizeof(int)) == 0;
}

bool passrights_refused(int fd)
{
    int passes = 1;
    socklen_t size = sizeof(passes);

    return getsockopt(fd, SOL_SOCKET, TROUPE_SO_PASSRIGHTS, &passes, &size) == 0 && passes == 0;
}
