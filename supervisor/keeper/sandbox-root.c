/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-root.h"
#include "shared/base/cleanup.h"
#include "supervisor/keeper/sandbox-mount.h"
#include "supervisor/keeper/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct sandbox_files *applied;

bool sandbox_root_is_device(const struct sandbox_path *path)
{
    return path->kind == SANDBOX_UNCHANGED && strncmp(path->path, "/dev/", strlen("/dev/")) == 0;
}

int sandbox_root_make_links(void)
{
    static const struct {
        const char *from, *to;
    } links[] = {{"dev/fd", "/proc/self/fd"},
                 {"dev/stdin", "/proc/self/fd/0"},
                 {"dev/stdout", "/proc/self/fd/1"},
                 {"dev/stderr", "/proc/self/fd/2"}};
    for (size_t i = 0; i < ELEMENTS(links); i++)
        if (symlink(links[i].to, links[i].from) < 0 && errno != EEXIST)
            return -errno;
    return 0;
}

/* The machine's, at the same place below the working directory. */
static int make_device(const char *path)
{
    _cleanup_close_ int place = mount_open(path);
    _cleanup_close_ int tree = place < 0 ? place : mount_clone(place);
    if (tree < 0)
        return tree == -ENOENT ? 0 : tree;
    if (mknod(path + 1, S_IFREG | 0444, 0) < 0)
        return -errno;
    return mount_attach(tree, path + 1);
}

/* "mqueue" is for a mount. */
static int make_devices(void)
{
    int r = mkdir("dev", 0755) < 0 || mkdir("dev/mqueue", 0755) < 0 ? -errno : 0;
    for (size_t i = 0; r == 0 && i < applied->n_paths; i++)
        if (sandbox_root_is_device(&applied->paths[i]))
            r = make_device(applied->paths[i].path);
    return r == 0 ? sandbox_root_make_links() : r;
}

static int enter_bare_root(void)
{
    static const struct mount_option options[] = {{"mode", "0555"}, {"size", "4k"}, {0}};
    _cleanup_close_ int root =
        mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    const mode_t mask = umask(0022);
    int r = root < 0 ? root : mount_attach(root, "/");
    if (r == 0)
        r = fchdir(root) < 0 ? -errno : make_devices();
    (void)umask(mask);
    if (r == 0)
        r = mount_restrict_one(root, MOUNT_ATTR_RDONLY);
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
    r = enter_bare_root();
    return r < 0 ? r : TAKE_FD(namespace);
}

bool sandbox_root_is_prepared(const struct sandbox_namespace *bare)
{
    return bare && sandbox_has_capability(CAP_SYS_CHROOT);
}

int sandbox_root_leave(const struct sandbox_namespace *bare, const struct sandbox_files *files)
{
    int r;
    applied = files;
    if (!sandbox_root_is_prepared(bare))
        return separate();
    r = sandbox_namespace_join(bare, CLONE_NEWNS, make);
    if (r < 0)
        return r;
    return unshare(CLONE_NEWNS) < 0 ? -errno : 1;
}
