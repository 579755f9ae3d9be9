/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-files.h"
#include "shared/base/cleanup.h"
#include "supervisor/keeper/sandbox-files-private.h"
#include "supervisor/keeper/sandbox-mount.h"
#include "supervisor/keeper/sandbox-root.h"
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
static bool root_is_bare;
static int devices = -1; /* the /dev that is prepared, if that is what is to be seen */

/* /tmp and /var/tmp */
static const char *const tmp_names[] = {"0", "1"};
static int tmp_top = -1;
static size_t n_tmps;

const char *sandbox_path_kind_to_string(enum sandbox_path_kind kind)
{
    static const char *const names[_SANDBOX_N_PATH_KINDS] = {
        [SANDBOX_INACCESSIBLE] = "InaccessiblePaths=",
        [SANDBOX_PRIVATE_TMP] = "PrivateTmp=",
        [SANDBOX_PROC] = "ProtectProc=, ProcSubset= or PrivatePIDs=",
        [SANDBOX_MQUEUE] = "PrivateIPC=",
        [SANDBOX_READ_ONLY] = "ReadOnlyPaths=",
        [SANDBOX_READ_WRITE] = "ReadWritePaths=",
        [SANDBOX_VISIBLE] = "PrivateRoot=",
        [SANDBOX_EMPTY] = "ProtectHome=tmpfs",
        [SANDBOX_UNCHANGED] = "ProtectSystem=strict",
    };
    return names[kind];
}

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
    r = tree >= 0 && entry->read_only ? mount_restrict(tree, MOUNT_ATTR_RDONLY) : 0;
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
    r = tree < 0 ? tree : mount_restrict(tree, MOUNT_ATTR_RDONLY);
    if (r < 0)
        close_fd(tree);
    return r < 0 ? r : tree;
}

static int read_only(const struct entry *entry)
{
    int tree = clone_at(entry->path);
    int r = tree < 0 ? tree : mount_restrict(tree, MOUNT_ATTR_RDONLY);
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

/* All that is to be seen in a new root. */
static int clone_for_root(struct entry *entry)
{
    if (!is_writable(entry) && !is_read_only(entry))
        return 0;
    entry->tree = clone_at(entry->path);
    return entry->tree < 0
               ? entry->tree
               : mount_separate(entry->tree, is_read_only(entry) ? MOUNT_ATTR_RDONLY : 0);
}

/* What stays writable below a tree that becomes read-only: a clone keeps what is read-only in it
 * already, which could not be told apart afterwards. */
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
        return new_proc(entry->read_only);
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

/* What is mounted on it is not seen by processes that have the old one. */
static int confine_root(enum sandbox_path_kind kind)
{
    if (kind == SANDBOX_READ_ONLY)
        return mount_restrict_all(MOUNT_ATTR_RDONLY);
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
static bool is_missing(const struct entry *entry)
{
    const enum sandbox_path_kind kind = entry->from->kind;
    struct stat status;
    return (kind == SANDBOX_INACCESSIBLE || kind == SANDBOX_EMPTY) &&
           lstat(entry->path, &status) < 0 && errno == ENOENT;
}

/* It may be part of a tree that is there. */
static int make_link(const struct sandbox_link *link)
{
    make_parents(link->from);
    return symlink(link->to, link->from) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_links(void)
{
    const struct sandbox_link *links;
    const size_t n_links = sandbox_files_links(&links);
    int r = devices < 0 ? sandbox_root_make_links() : 0;
    for (size_t i = 0; r == 0 && i < n_links; i++)
        r = make_link(&links[i]);
    return r;
}

/* Returns the root. mount_new_node() needs a /proc. A link takes a page if it is long. */
static int new_root(void)
{
    static const struct mount_option options[] = {{"mode", "0755"}, {"size", "4m"}, {0}};
    int root = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    int r = root < 0 ? root : mount_attach(root, "/");
    if (r == 0)
        r = root_is_bare ? mount_enter_above(root) : mount_enter(root);
    if (r == 0 && (mkdir("/proc", 0755) < 0 || mkdir("/dev", 0755) < 0))
        r = -errno;
    if (r == 0 && devices >= 0)
        r = mount_attach(devices, "/dev");
    if (r < 0)
        close_fd(root);
    return r < 0 ? r : root;
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
    _cleanup_close_ int root = new_root();
    int r = root < 0 ? root : each(attach, ret_path);
    if (r == 0) {
        *ret_path = NULL;
        r = make_links();
    }
    if (r == 0)
        r = mount_restrict_one(root, MOUNT_ATTR_RDONLY);
    (void)umask(mask);
    return r;
}

static int attach_in_old_root(const struct sandbox_path **ret_path)
{
    int r = sandbox_files_list(applied, false, ret_path);
    if (r == 0)
        r = each(clone_writable, ret_path);
    return r < 0 ? r : each(attach, ret_path);
}

/* New mounts of the machine appear here, too; those made here stay here. */
static int separate(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -errno;
    return 0;
}

/* Takes along what is to be seen in the new root. */
static int leave_root(const struct sandbox_namespace *bare, const struct sandbox_path **ret_path)
{
    const int listed = sandbox_has_capability(CAP_SYS_ADMIN)
                           ? sandbox_files_list(applied, sandbox_root_is_prepared(bare), ret_path)
                           : -EPERM;
    int r;
    if (listed < 0)
        return listed;
    r = each(clone_for_root, ret_path);
    if (r == 0 || r == -EPERM || r == -ENOSYS)
        *ret_path = NULL;
    if (r == 0)
        r = sandbox_root_leave(bare, applied);
    root_is_bare = r > 0;
    if (r > 0 && listed > 0)
        r = devices = clone_at("/dev");
    return r < 0 ? r : 0;
}

int sandbox_files_separate(const struct sandbox_files *files, const struct sandbox_namespace *bare,
                           const struct sandbox_path **ret_path)
{
    *ret_path = NULL;
    applied = files;
    return files->private_root ? leave_root(bare, ret_path) : separate();
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
    devices = close_fd(devices);
    return r;
}
