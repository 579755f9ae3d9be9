/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-files.h"
#include "shared/base/cleanup.h"
#include "supervisor/keeper/sandbox-files-private.h"
#include "supervisor/keeper/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define TMP_SIZE   "10%" /* of the memory: as systemd's private /tmp in memory */
#define TMP_INODES "400k"

static const struct sandbox_files *applied;

/* /tmp and /var/tmp */
static const char *const tmp_names[] = {"0", "1"};
static int tmp_top = -1;
static size_t n_tmps;

/* ---- what is mounted there ---- */

static int clone_at(const char *path)
{
    _cleanup_close_ int place = mount_open(path);
    return place < 0 ? place : mount_clone(place);
}

/* Before Linux 6.15, directories can be cloned only where they are attached. */
static int new_tmp_top(const char *path)
{
    static const struct mount_option options[] = {
        {"source", "troupe"}, {"mode", "0755"}, {"size", TMP_SIZE}, {"nr_inodes", TMP_INODES}, {0}};
    int top = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    int r = top < 0 ? top : mount_attach(top, path);
    const mode_t mask = umask(0);
    for (size_t i = 0; r == 0 && i < ELEMENTS(tmp_names); i++)
        r = mkdirat(top, tmp_names[i], 01777) < 0 ? -errno : 0;
    (void)umask(mask);
    if (r < 0)
        close_fd(top);
    return r < 0 ? r : top;
}

/*
 * All are directories of one file system, below the first of them: its bounds are those of all, and
 * one call shows whether a job has left something. By its source and its number of directories,
 * libtroupe knows what it may empty and when it is empty (worker/worker/private-tmp.c).
 */
static int new_tmp(const struct entry *entry)
{
    int tree, r;
    if (tmp_top < 0)
        tmp_top = new_tmp_top(entry->path);
    tree = tmp_top < 0 ? tmp_top : mount_clone_part(tmp_top, tmp_names[n_tmps++]);
    r = tree >= 0 && entry->read_only ? mount_restrict(tree) : 0;
    if (r < 0)
        close_fd(tree);
    return r < 0 ? r : tree;
}

#define INTERFACE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

static int new_proc(bool read_only)
{
    static const char *const hidepids[_SANDBOX_N_HIDEPIDS] = {
        [SANDBOX_HIDEPID_NOACCESS] = "noaccess",
        [SANDBOX_HIDEPID_INVISIBLE] = "invisible",
        [SANDBOX_HIDEPID_PTRACEABLE] = "ptraceable",
    };
    struct mount_option options[3] = {0};
    size_t n = 0;
    if (applied->hidepid != SANDBOX_HIDEPID_DEFAULT)
        options[n++] = (struct mount_option){"hidepid", hidepids[applied->hidepid]};
    if (applied->only_processes)
        options[n++] = (struct mount_option){"subset", "pid"};
    return mount_new("proc", options, INTERFACE | (read_only ? MOUNT_ATTR_RDONLY : 0));
}

static int new_mqueue(bool read_only)
{
    static const struct mount_option none[] = {{0}};
    return mount_new("mqueue", none, INTERFACE | (read_only ? MOUNT_ATTR_RDONLY : 0));
}

static int new_empty(void)
{
    static const struct mount_option options[] = {{"mode", "0755"}, {"size", "4k"}, {0}};
    return mount_new("tmpfs", options,
                     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static int new_inaccessible(const char *path)
{
    struct stat status;
    int tree, r;
    if (lstat(path, &status) < 0)
        return -errno;
    tree = mount_new_node(status.st_mode & S_IFMT);
    r = tree < 0 ? tree : mount_restrict(tree);
    if (r < 0)
        close_fd(tree);
    return r < 0 ? r : tree;
}

static int read_only(const struct entry *entry)
{
    int tree = clone_at(entry->path);
    int r = tree < 0 ? tree : mount_restrict(tree);
    if (r < 0)
        close_fd(tree);
    return r < 0 ? r : tree;
}

static bool is_writable(const struct entry *entry)
{
    return entry->from->kind == SANDBOX_READ_WRITE || entry->from->kind == SANDBOX_UNCHANGED;
}

static bool is_read_only(const struct entry *entry)
{
    return entry->from->kind == SANDBOX_READ_ONLY || entry->from->kind == SANDBOX_VISIBLE;
}

/* A user namespace may have one only where it sees another one, as it does not in the new root. */
static int new_proc_for_root(struct entry *entry)
{
    entry->tree = new_proc(entry->read_only);
    return entry->tree < 0 ? entry->tree : 0;
}

/* Takes what the new root shows, before the old one is left. */
static int take_for_root(struct entry *entry)
{
    if (entry->from->kind == SANDBOX_PROC)
        return new_proc_for_root(entry);
    if (!is_writable(entry) && !is_read_only(entry))
        return 0;
    entry->tree = clone_at(entry->path);
    return entry->tree < 0
               ? entry->tree
               : mount_separate(entry->tree, is_read_only(entry) ? MOUNT_ATTR_RDONLY : 0);
}

/* Clones what stays writable below a tree that becomes read-only: a clone keeps what is read-only
 * in it already, which could not be distinguished afterwards. */
static int clone_writable(struct entry *entry)
{
    entry->tree = is_writable(entry) ? clone_at(entry->path) : -1;
    return is_writable(entry) && entry->tree < 0 ? entry->tree : 0;
}

static int make_tree(const struct entry *entry)
{
    switch (entry->from->kind) {
    case SANDBOX_INACCESSIBLE:
        return new_inaccessible(entry->path);
    case SANDBOX_PRIVATE_TMP:
        return new_tmp(entry);
    case SANDBOX_PROC:
        return applied->private_root ? entry->tree : new_proc(entry->read_only);
    case SANDBOX_MQUEUE:
        return new_mqueue(entry->read_only);
    case SANDBOX_READ_ONLY:
    case SANDBOX_VISIBLE:
        return applied->private_root ? entry->tree : read_only(entry);
    case SANDBOX_EMPTY:
        return new_empty();
    default:
        return entry->tree;
    }
}

/* Changes the existing root: processes that have the old root would not see another one mounted on
 * it. */
static int confine_root(enum sandbox_path_kind kind)
{
    if (kind == SANDBOX_READ_ONLY)
        return mount_restrict_all();
    return kind == SANDBOX_READ_WRITE ? 0 : -EINVAL;
}

/* ---- a new root ---- */

/* How many bytes of the paths are the same. */
static size_t common_size(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return n;
}

/* The parents that it has in common with the path before are there already. */
static void make_parents(const char *path)
{
    static const char *before = "";
    char part[PATH_MAX];
    const size_t size = strlen(path), common = common_size(path, before);
    before = path;
    for (size_t n = 1; n < size && n < sizeof(part); n++) {
        if (path[n] != '/' || n < common)
            continue;
        memcpy(part, path, n);
        part[n] = '\0';
        (void)mkdir(part, 0755);
    }
}

/* Where the tree is to be attached, if that is not in another one, which has the place. */
static void make_place(const struct entry *entry)
{
    struct stat status;
    const bool is_file =
        entry->tree >= 0 && fstat(entry->tree, &status) == 0 && !S_ISDIR(status.st_mode);
    make_parents(entry->path);
    if (is_file)
        (void)mknod(entry->path, S_IFREG | 0444, 0);
    else
        (void)mkdir(entry->path, 0755);
}

/* To hide what is not there would take longer. */
static bool may_be_missing(const struct entry *entry)
{
    return entry->from->kind == SANDBOX_INACCESSIBLE || entry->from->kind == SANDBOX_EMPTY;
}

static bool is_missing(const struct entry *entry)
{
    struct stat status;
    return may_be_missing(entry) && lstat(entry->path, &status) < 0 && errno == ENOENT;
}

/* It may be part of a tree that is there. */
static int make_link(const struct sandbox_link *link)
{
    make_parents(link->from);
    return symlink(link->to, link->from) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_links(const struct sandbox_link *links, size_t n)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = make_link(&links[i]);
    return r;
}

static int make_all_links(void)
{
    static const struct sandbox_link of_dev[] = {{"/dev/fd", "/proc/self/fd"},
                                                 {"/dev/stdin", "/proc/self/fd/0"},
                                                 {"/dev/stdout", "/proc/self/fd/1"},
                                                 {"/dev/stderr", "/proc/self/fd/2"}};
    const struct sandbox_link *links;
    const size_t n_links = sandbox_files_links(&links);
    int r = make_links(of_dev, ELEMENTS(of_dev));
    return r < 0 ? r : make_links(links, n_links);
}

/* Returns the root. mount_new_node() needs a /proc. A link takes a page if it is long. */
static int new_root(void)
{
    static const struct mount_option options[] = {{"mode", "0755"}, {"size", "4m"}, {0}};
    int tree = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    int r = tree < 0 ? tree : mount_attach(tree, "/");
    if (r == 0)
        r = mount_enter(tree);
    if (r == 0 && (mkdir("/proc", 0755) < 0 || mkdir("/dev", 0755) < 0))
        r = -errno;
    if (r < 0)
        close_fd(tree);
    return r < 0 ? r : tree;
}

static int attach(struct entry *entry)
{
    int r;
    if (strcmp(entry->path, "/") == 0)
        return applied->private_root ? -EINVAL : confine_root(entry->from->kind);
    if (applied->private_root && is_missing(entry))
        return 0;
    if (applied->private_root && entry->from->kind != SANDBOX_INACCESSIBLE)
        make_place(entry);
    entry->tree = make_tree(entry);
    r = entry->tree < 0 ? entry->tree : mount_attach(entry->tree, entry->path);
    entry->tree = close_fd(entry->tree);
    /* It may have been in what another entry has replaced. */
    return r == -ENOENT && entry->from->optional ? 0 : r;
}

static int each(int (*fn)(struct entry *entry), const struct sandbox_path **ret_path)
{
    struct entry *entries;
    const size_t n_entries = sandbox_files_listed(&entries);
    for (size_t i = 0; i < n_entries; i++) {
        int r = fn(&entries[i]);
        *ret_path = entries[i].from;
        if (r < 0)
            return r;
    }
    return 0;
}

static int attach_in_new_root(const struct sandbox_path **ret_path)
{
    const mode_t mask = umask(0022);
    _cleanup_close_ int tree = new_root();
    int r = tree < 0 ? tree : each(attach, ret_path);
    if (r == 0) {
        *ret_path = NULL;
        r = make_all_links();
    }
    if (r == 0)
        r = mount_restrict_one(tree);
    (void)umask(mask);
    return r;
}

static int attach_in_old_root(const struct sandbox_path **ret_path)
{
    int r = sandbox_files_list(applied, ret_path);
    if (r == 0)
        r = each(clone_writable, ret_path);
    return r < 0 ? r : each(attach, ret_path);
}

/* Mounts made here stay here. `propagation`: those of the machine appear (MS_SLAVE), or not. */
static int separate(unsigned long propagation)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | propagation, NULL) < 0)
        return -errno;
    return 0;
}

/* Takes along what is to be seen in the new root. */
static int take_and_leave(const struct sandbox_path **ret_path)
{
    int r = sandbox_may_mount() ? sandbox_files_list(applied, ret_path) : -EPERM;
    if (r < 0)
        return r;
    r = each(take_for_root, ret_path);
    if (r == 0 || ((r == -EPERM || r == -ENOSYS) && (*ret_path)->kind != SANDBOX_PROC))
        *ret_path = NULL;
    return r < 0 ? r : separate(MS_PRIVATE);
}

int sandbox_files_separate(const struct sandbox_files *files, const struct sandbox_path **ret_path)
{
    *ret_path = NULL;
    applied = files;
    return files->private_root ? take_and_leave(ret_path) : separate(MS_SLAVE);
}

int sandbox_files_apply(const struct sandbox_path **ret_path)
{
    int r;
    *ret_path = NULL;
    if (applied->private_root)
        r = attach_in_new_root(ret_path);
    else
        r = attach_in_old_root(ret_path);
    tmp_top = close_fd(tmp_top);
    return r;
}
