/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-root.h"
#include "shared/base/cleanup.h"
#include "supervisor/keeper/sandbox-mount.h"
#include "supervisor/keeper/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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

static int separate(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    return 0;
}

static int make(void)
{
    _cleanup_close_ int namespace = -1;
    int r = separate();
    if (r < 0)
        return r;
    namespace = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    if (namespace < 0)
        return -errno;
    r = enter_empty_root();
    return r < 0 ? r : TAKE_FD(namespace);
}

int sandbox_root_leave(const struct sandbox_namespace *empty)
{
    int r;
    if (!empty || !sandbox_has_capability(CAP_SYS_CHROOT))
        return separate();
    r = sandbox_namespace_join(empty, CLONE_NEWNS, make);
    if (r < 0)
        return r;
    return unshare(CLONE_NEWNS) < 0 ? -errno : 1;
}
