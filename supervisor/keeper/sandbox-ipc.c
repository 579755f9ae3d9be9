/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-ipc.h"
#include "supervisor/keeper/sandbox-answer.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>

/* Queues can also be made as files, of which the filters know nothing, in a file system that the
 * process could mount. */
bool sandbox_ipc_is_unused(const struct sandbox *sandbox)
{
    return sandbox && sandbox->wall && answer_forbids_ipc(sandbox);
}

static int make(void)
{
    int fd;
    if (unshare(CLONE_NEWIPC) < 0)
        return -errno;
    fd = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int sandbox_ipc_join(const struct sandbox_namespace *empty)
{
    return sandbox_namespace_join(empty, CLONE_NEWIPC, make);
}
