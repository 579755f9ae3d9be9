/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-root.h"
#include "shared/base/cleanup.h"
#include "supervisor/keeper/sandbox-mount.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

static int enter_empty_root(void)
{
    static const struct mount_option options[] = {{"mode", "0555"}, {"size", "4k"}, {0}};
    _cleanup_close_ int root =
        mount_new("tmpfs", options,
                  MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    int r = root < 0 ? root : mount_attach(root, "/");
    return r < 0 ? r : mount_enter(root);
}

static int make(void)
{
    _cleanup_close_ int namespace = -1;
    int r;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    namespace = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (namespace < 0)
        return -errno;
    r = enter_empty_root();
    return r < 0 ? r : TAKE_FD(namespace);
}

static int make_alone(void)
{
    const int namespace = make();
    close_fd(namespace);
    return namespace < 0 ? namespace : 0;
}

int sandbox_root_leave(const struct sandbox_namespace *empty)
{
    int r = empty ? sandbox_namespace_join(empty, CLONE_NEWNS, make) : make_alone();
    if (r == 0 && empty && unshare(CLONE_NEWNS) < 0)
        r = -errno;
    return r;
}
