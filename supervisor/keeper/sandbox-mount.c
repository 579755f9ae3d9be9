/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-mount.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Longer than a line of mountinfo, which has two paths and the options of a mount. */
#define LINE_SIZE ((size_t)32 * 1024)

static int error_or(int result)
{
    return result < 0 ? -errno : result;
}

static int reject_link(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    return S_ISLNK(status.st_mode) ? -ELOOP : 0;
}

/* `place` is closed. */
static int open_part(int place, const char *name)
{
    int fd = openat(place, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? -errno : reject_link(fd);
    close_fd(place);
    if (r < 0)
        close_fd(fd);
    return r < 0 ? r : fd;
}

/* Takes a call for each part of the path. */
static int open_without_links(const char *path)
{
    int place = open("/", O_PATH | O_CLOEXEC);
    if (place < 0)
        return -errno;
    while (place >= 0 && *(path += strspn(path, "/")) != '\0') {
        char name[NAME_MAX + 1];
        const size_t size = strcspn(path, "/");
        if (size >= sizeof(name)) {
            close_fd(place);
            return -ENAMETOOLONG;
        }
        memcpy(name, path, size);
        name[size] = '\0';
        path += size;
        place = open_part(place, name);
    }
    return place;
}

int mount_open(const char *path)
{
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS,
    };
    int fd = error_or((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
    /* Filters cannot see its flags, so RestrictSUIDSGID=yes of a unit hides the call. */
    return fd == -ENOSYS ? open_without_links(path) : fd;
}

/* Since Linux 6.8; the headers may be older. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000u
#endif

/* Since Linux 6.11; the headers may be older. */
#ifndef PIDFD_GET_MNT_NAMESPACE
#define PIDFD_GET_MNT_NAMESPACE _IO(0xff, 3)
#endif

/* The kernel takes longer to open a file in /proc, and to forget that when the process has ended.
 */
int mount_namespace(void)
{
    _cleanup_close_ int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int fd = self < 0 ? -1 : ioctl(self, PIDFD_GET_MNT_NAMESPACE, 0);
    return fd >= 0 ? fd : error_or(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
}

int mount_clone(int place)
{
    return error_or(
        open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH));
}

int mount_clone_part(int tree, const char *name)
{
    return error_or(open_tree(tree, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

int mount_new(const char *type, const struct mount_option *options, uint64_t attributes)
{
    _cleanup_close_ int fs = fsopen(type, FSOPEN_CLOEXEC);
    if (fs < 0)
        return -errno;
    for (; options->name; options++)
        if (fsconfig(fs, FSCONFIG_SET_STRING, options->name, options->value, 0) < 0)
            return -errno;
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    return error_or(fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attributes));
}

static int set_attributes(int tree, const char *path, unsigned flags, uint64_t attributes,
                          uint64_t propagation)
{
    struct mount_attr attr = {.attr_set = attributes, .propagation = propagation};
    return error_or(mount_setattr(tree, path, flags, &attr, sizeof(attr)));
}

int mount_separate(int tree, uint64_t attributes)
{
    return set_attributes(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, attributes, MS_SLAVE);
}

int mount_restrict(int tree)
{
    return set_attributes(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0);
}

int mount_restrict_one(int tree)
{
    return set_attributes(tree, "", AT_EMPTY_PATH, MOUNT_ATTR_RDONLY, 0);
}

int mount_restrict_all(void)
{
    return set_attributes(AT_FDCWD, "/", AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0);
}

int mount_attach(int tree, const char *path)
{
    _cleanup_close_ int place = mount_open(path);
    if (place < 0)
        return place;
    return error_or(
        move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

int mount_enter(int tree)
{
    if (fchdir(tree) < 0)
        return -errno;
    /* Puts the old root on top of the new one, from where it is taken away. */
    if (syscall(SYS_pivot_root, ".", ".") == 0)
        return error_or(umount2(".", MNT_DETACH));
    return errno == EINVAL ? error_or(chroot(".")) : -errno;
}

#ifndef SYS_listmount
#define SYS_listmount 458
#endif

bool mount_may_have_children(const char *path)
{
    struct statx status;
    uint64_t child;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_MNT_ID_UNIQUE, &status) < 0 ||
        !(status.stx_mask & STATX_MNT_ID_UNIQUE))
        return true;
    const struct {
        uint32_t size, unused;
        uint64_t mount, after;
    } request = {.size = sizeof(request), .mount = status.stx_mnt_id};
    return syscall(SYS_listmount, &request, &child, 1, 0) != 0;
}

/* The fifth field. */
static bool read_place(const char *line, char *ret, size_t size)
{
    size_t n = 0;
    for (int field = 1; line && field < 5; field++) {
        line = strchr(line, ' ');
        line = line ? line + 1 : NULL;
    }
    if (!line)
        return false;
    for (; line[n] != '\0' && line[n] != ' ' && n + 1 < size; n++)
        ret[n] = line[n];
    ret[n] = '\0';
    return n > 0;
}

/* Takes the complete lines. Returns how much of the text they are, or what `fn` has returned. */
static ssize_t each_line(char *text, int (*fn)(const char *place))
{
    char *line = text, *end, place[256];
    int r = 0;
    while (r == 0 && (end = strchr(line, '\n'))) {
        *end = '\0';
        if (read_place(line, place, sizeof(place)))
            r = fn(place);
        line = end + 1;
    }
    return r < 0 ? r : line - text;
}

int mount_each(int (*fn)(const char *place))
{
    static char text[LINE_SIZE];
    _cleanup_close_ int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t n;
    if (fd < 0)
        return -errno;
    while ((n = read(fd, text + size, sizeof(text) - 1 - size)) > 0) {
        size += (size_t)n;
        text[size] = '\0';
        n = each_line(text, fn);
        if (n < 0)
            return (int)n;
        size -= (size_t)n;
        memmove(text, text + n, size);
        if (size == sizeof(text) - 1)
            return -E2BIG;
    }
    return n < 0 ? -errno : 0;
}

/* Without CAP_MKNOD, a socket is as good as a device: neither can be opened. */
static int make_node(int directory, mode_t type)
{
    int r = mknodat(directory, "node", type, 0);
    if (r < 0 && errno == EPERM)
        r = mknodat(directory, "node", S_IFSOCK, 0);
    return error_or(r);
}

/* Before Linux 6.15, a part of a tree can be cloned only while the tree is attached. */
static int clone_node(int directory)
{
    int r = mount_attach(directory, "/proc");
    if (r < 0)
        return r;
    r = mount_clone_part(directory, "node");
    (void)umount2("/proc", MNT_DETACH);
    return r;
}

int mount_new_node(mode_t type)
{
    static const struct mount_option options[] = {{"mode", "0"}, {"size", "4k"}, {0}};
    _cleanup_close_ int directory =
        mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    int r;
    if (directory < 0 || S_ISDIR(type))
        return TAKE_FD(directory);
    r = make_node(directory, type);
    return r < 0 ? r : clone_node(directory);
}
