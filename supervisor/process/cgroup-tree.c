/* SPDX-License-Identifier: MIT */

/* Finds and prepares the delegated cgroup subtree. */

#include "shared/base/cleanup.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/procfs.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define LEAF "supervisor"

/* Milliseconds for killed processes to leave their cgroups, at the end. */
#define WAITS_MAX 200

static void cleanup_file(FILE **file)
{
    if (*file)
        (void)fclose(*file);
}
#define _cleanup_file_ _cleanup_(cleanup_file)

static int unavailable(struct cgroup_tree *tree, const char *why)
{
    (void)snprintf(tree->text, sizeof(tree->text), "none, using process groups instead: %s", why);
    tree->fd = close_fd(tree->fd);
    return CGROUP_E_UNAVAILABLE;
}

/* Returns whether `error` is a shortage, and not a lack of cgroups. */
static bool is_shortage(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE;
}

static int unavailable_errno(struct cgroup_tree *tree, const char *what, int error)
{
    char why[160];
    if (is_shortage(error)) {
        tree->fd = close_fd(tree->fd);
        return -error;
    }
    (void)snprintf(why, sizeof(why), "%s: %s", what, strerror(error));
    return unavailable(tree, why);
}

/* Finds the mount of cgroup2, and the directory of the hierarchy that it shows. Returns 0,
 * -ENOENT or -errno. */
static int find_mount(char **ret_path, char **ret_root)
{
    _cleanup_free_ char *line = NULL;
    size_t n = 0;
    _cleanup_file_ FILE *file = fopen("/proc/self/mountinfo", "re");
    if (!file)
        return -errno;
    while (getline(&line, &n, file) >= 0) {
        const char *type = strstr(line, " - ");
        if (!type || strncmp(type, " - cgroup2 ", strlen(" - cgroup2 ")) != 0)
            continue;
        _cleanup_free_ char *root = NULL, *path = NULL;
        if (sscanf(line, "%*d %*d %*s %ms %ms", &root, &path) != 2)
            continue;
        *ret_root = TAKE_PTR(root);
        *ret_path = TAKE_PTR(path);
        return 0;
    }
    return -ENOENT;
}

/* Returns the directory of the supervisor's cgroup, of its parent if it is already in the leaf. */
static int find_directory(char **ret)
{
    _cleanup_free_ char *mount = NULL, *root = NULL;
    char own[PROCFS_CGROUP_SIZE];
    int r = find_mount(&mount, &root);
    if (r == 0)
        r = procfs_cgroup(0, own);
    if (r < 0)
        return r;
    /* A bind mount shows only a part of the hierarchy. */
    const char *place = own;
    size_t n = strlen(root);
    if (strcmp(root, "/") != 0 && strncmp(own, root, n) == 0)
        place = own + n;
    char *slash = strrchr(own, '/');
    if (slash && place <= slash && strcmp(slash, "/" LEAF) == 0)
        *slash = '\0';
    return asprintf(ret, "%s%s", mount, strcmp(place, "/") == 0 ? "" : place) < 0 ? -ENOMEM : 0;
}

/* Reads a small file, NUL-terminated. Returns its length or -errno. */
static ssize_t read_at(int directory, const char *name, char *buffer, size_t size)
{
    _cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buffer, size - 1);
    if (n < 0)
        return -errno;
    buffer[n] = '\0';
    return n;
}

static bool has_mark(int fd, const char *name)
{
    char value[8];
    ssize_t n = fgetxattr(fd, name, value, sizeof(value));
    return n == 1 && value[0] == '1';
}

/*
 * Returns whether the cgroup may be changed: the service manager has marked it as delegated, or it
 * contains only the supervisor and the keeper. Being writable is not enough: a supervisor that root
 * starts from a shell would rearrange the session's cgroup.
 */
static bool is_ours(int fd, pid_t keeper)
{
    char text[64], own[32], turned[32];
    if (has_mark(fd, "user.delegate") || has_mark(fd, "trusted.delegate"))
        return true;
    if (read_at(fd, "cgroup.procs", text, sizeof(text)) < 0)
        return false;
    (void)snprintf(own, sizeof(own), "%d\n", (int)getpid());
    if (keeper > 0) {
        (void)snprintf(own, sizeof(own), "%d\n%d\n", (int)keeper, (int)getpid());
        (void)snprintf(turned, sizeof(turned), "%d\n%d\n", (int)getpid(), (int)keeper);
    }
    return text[0] == '\0' || strcmp(text, own) == 0 || (keeper > 0 && strcmp(text, turned) == 0);
}

/* The kernel delegates controllers only if all processes are in leaves. */
static int move_into_leaf(int fd, pid_t keeper)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%d", (int)keeper);
    if (mkdirat(fd, LEAF, 0755) < 0 && errno != EEXIST)
        return -errno;
    int r = cgroup_write(fd, LEAF "/cgroup.procs", "0");
    return r == 0 && keeper > 0 ? cgroup_write(fd, LEAF "/cgroup.procs", text) : r;
}

static void enable_controllers(struct cgroup_tree *tree)
{
    char text[512], command[16];
    unsigned there;

    if (read_at(tree->fd, "cgroup.controllers", text, sizeof(text)) < 0)
        return;
    there = cgroup_controllers_of(text);
    for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++) {
        if (!(there & 1u << i))
            continue;
        /* One at a time, so that a refused one does not affect the others. */
        (void)snprintf(command, sizeof(command), "+%s", cgroup_controller_name(i));
        if (cgroup_write(tree->fd, "cgroup.subtree_control", command) == 0)
            tree->controllers |= 1u << i;
    }
}

/* "one per worker; no io controller here" */
static void describe(struct cgroup_tree *tree)
{
    char missing[40] = "";
    size_t n = 0;

    for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++) {
        size_t used = strlen(missing);

        if (tree->controllers & 1u << i)
            continue;
        (void)snprintf(missing + used, sizeof(missing) - used, "%s%s", n > 0 ? ", " : "",
                       cgroup_controller_name(i));
        n++;
    }
    tree->complete = n == 0;
    if (tree->complete)
        (void)snprintf(tree->text, sizeof(tree->text), "one per worker");
    else if (n == CGROUP_CONTROLLERS)
        (void)snprintf(tree->text, sizeof(tree->text), "one per worker; no controllers here");
    else
        (void)snprintf(tree->text, sizeof(tree->text), "one per worker; no %s controller%s here",
                       missing, n == 1 ? "" : "s");
}

int cgroup_tree_init(struct cgroup_tree *tree, const char *root, pid_t keeper)
{
    *tree = (struct cgroup_tree)CGROUP_TREE_NULL;
    list_init(&tree->leftovers);
    _cleanup_free_ char *path = NULL;
    int r = 0;
    if (!root)
        r = find_directory(&path);
    else if (!(path = strdup(root)))
        r = -ENOMEM;
    if (r == -ENOENT)
        return unavailable(tree, "cgroup v2 is not mounted here");
    if (r < 0)
        return unavailable_errno(tree, "finding the supervisor's cgroup", -r);

    tree->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree->fd < 0)
        return unavailable_errno(tree, path, errno);
    /* The root of the hierarchy has no cgroup.type and cannot be delegated. */
    if (faccessat(tree->fd, "cgroup.type", F_OK, 0) < 0)
        return unavailable(tree,
                           "the supervisor runs in the root cgroup; set Delegate=yes in its unit");
    if (faccessat(tree->fd, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0 ||
        faccessat(tree->fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 || !is_ours(tree->fd, keeper))
        return unavailable(
            tree, "the supervisor's cgroup is not delegated; set Delegate=yes in its unit");
    r = move_into_leaf(tree->fd, keeper);
    if (r < 0)
        return unavailable_errno(tree, "moving into the cgroup " LEAF, -r);
    enable_controllers(tree);
    describe(tree);
    oom_begin_above(tree);
    tree->path = TAKE_PTR(path);
    return 0;
}

/* Calls `fn` for the cgroup of each slot. */
static void each_slot(struct cgroup_tree *tree,
                      void (*fn)(struct cgroup_tree *tree, const struct dirent *entry))
{
    int fd = openat(tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory) {
        close_fd(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory));) {
        if (strchr(entry->d_name, ':'))
            fn(tree, entry);
    }
    (void)closedir(directory);
}

static int compare_inodes(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void sweep_one(struct cgroup_tree *tree, const struct dirent *entry)
{
    const uint64_t inode = entry->d_ino;
    struct cgroup cgroup = CGROUP_NULL;
    if (tree->n_adopted > 0 &&
        bsearch(&inode, tree->adopted, tree->n_adopted, sizeof(inode), compare_inodes))
        return;
    cgroup.fd = openat(tree->fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)cgroup_kill(&cgroup);
    cgroup_deinit(&cgroup);
    cgroup_leave_directory(tree, entry->d_name);
}

void cgroup_tree_sweep(struct cgroup_tree *tree)
{
    if (tree->fd < 0)
        return;
    if (tree->n_adopted > 0)
        qsort(tree->adopted, tree->n_adopted, sizeof(tree->adopted[0]), compare_inodes);
    each_slot(tree, sweep_one);
    free(TAKE_PTR(tree->adopted));
    tree->n_adopted = 0;
}

/* Removes a cgroup that its slot released while processes in it were still dying. Waits for their
 * end, a moment for all cgroups together. */
static void remove_leftover(struct cgroup_tree *tree, const struct dirent *entry)
{
    while (unlinkat(tree->fd, entry->d_name, AT_REMOVEDIR) < 0 && errno == EBUSY &&
           tree->n_waits++ < WAITS_MAX)
        (void)poll(NULL, 0, 1);
}

void cgroup_tree_deinit(struct cgroup_tree *tree)
{
    if (tree->fd >= 0) {
        cgroup_forget_leftovers(tree);
        each_slot(tree, remove_leftover);
    }
    tree->fd = close_fd(tree->fd);
    free(TAKE_PTR(tree->adopted));
    free(TAKE_PTR(tree->path));
}

const char *cgroup_tree_missing(const struct cgroup_tree *tree)
{
    return tree->complete ? NULL : tree->text;
}

unsigned cgroup_tree_controllers(const struct cgroup_tree *tree)
{
    return tree ? tree->controllers : 0;
}
