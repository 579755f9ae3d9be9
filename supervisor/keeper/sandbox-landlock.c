/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-landlock.h"
#include "shared/base/cleanup.h"
#include "shared/base/landlock.h"
#include "supervisor/keeper/sandbox-files-private.h"
#include "supervisor/keeper/sandbox-mount.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALL (LANDLOCK_READ | LANDLOCK_WRITE)

/* In all the directories that have to be listed. */
#define CHILDREN_MAX 10000

struct rules {
    int fd, abi;
    size_t n_children;
};

/* Directories cannot be made empty without mounts. */
static uint64_t rights_without_mounts(const struct entry *entry)
{
    switch (entry->from->kind) {
    case SANDBOX_READ_ONLY:
    case SANDBOX_VISIBLE:
        return LANDLOCK_READ;
    case SANDBOX_READ_WRITE:
    case SANDBOX_UNCHANGED:
    case SANDBOX_MQUEUE:
        return entry->read_only ? LANDLOCK_READ : ALL;
    default:
        return 0;
    }
}

static int allow(const struct rules *rules, const char *path, uint64_t rights)
{
    _cleanup_close_ int fd = rights ? mount_open(path) : -1;
    if (rights == 0)
        return 0;
    return fd < 0 ? fd : landlock_allow(rules->fd, rules->abi, rights, fd);
}

static bool is_below(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 &&
           (path[n] == '/' || (directory[n - 1] == '/' && path[n]));
}

/* Of paths that are not listed. */
static uint64_t rights_elsewhere = ALL;

/* The innermost entry counts, and it comes last of those that contain the path. */
static uint64_t rights_at(const char *path)
{
    struct entry *entries;
    const size_t n = sandbox_files_listed(&entries);
    uint64_t rights = rights_elsewhere;
    for (size_t i = 0; i < n; i++)
        if (strcmp(path, entries[i].path) == 0 || is_below(path, entries[i].path))
            rights = rights_without_mounts(&entries[i]);
    return rights;
}

/* Returns the rights that the path shares with all entries below. */
static uint64_t common_rights(const char *path)
{
    struct entry *entries;
    const size_t n = sandbox_files_listed(&entries);
    uint64_t rights = rights_at(path);
    for (size_t i = 0; i < n; i++)
        if (is_below(entries[i].path, path))
            rights &= rights_without_mounts(&entries[i]);
    return rights;
}

/* A path that is an entry, or above one, has rules of its own. */
static bool is_listed(const char *path)
{
    struct entry *entries;
    const size_t n = sandbox_files_listed(&entries);
    for (size_t i = 0; i < n; i++)
        if (strcmp(path, entries[i].path) == 0 || is_below(entries[i].path, path))
            return true;
    return false;
}

static int allow_child(struct rules *rules, int directory, const char *path, const char *name,
                       uint64_t rights)
{
    char child[PATH_MAX];
    const char *above = strcmp(path, "/") == 0 ? "" : path;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (strlen(above) + strlen(name) + 2 > sizeof(child))
        return -ENAMETOOLONG;
    (void)stpcpy(stpcpy(stpcpy(child, above), "/"), name);
    if (is_listed(child))
        return 0;
    if (rules->n_children++ == CHILDREN_MAX)
        return -E2BIG;
    _cleanup_close_ int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    /* It may have gone. */
    return fd < 0 ? 0 : landlock_allow(rules->fd, rules->abi, rights, fd);
}

/* opendir() would allocate memory. */
struct kernel_dirent {
    uint64_t number;
    int64_t offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

static int allow_children(struct rules *rules, const char *path, uint64_t rights)
{
    char buffer[4096] __attribute__((aligned(8)));
    _cleanup_close_ int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;
    if (directory < 0)
        return errno == EACCES ? 0 : -errno; /* what cannot be listed is not allowed */
    for (long n; r == 0 && (n = syscall(SYS_getdents64, directory, buffer, sizeof(buffer))) != 0;) {
        if (n < 0)
            return -errno;
        for (long at = 0; r == 0 && at < n;) {
            const struct kernel_dirent *entry = (const void *)(buffer + at);
            r = allow_child(rules, directory, path, entry->name, rights);
            at += entry->size;
        }
    }
    return r;
}

/* A right that something below lacks is given to each of its other children instead. */
static int allow_node(struct rules *rules, const char *path)
{
    const uint64_t rights = rights_at(path), common = common_rights(path);
    int r = allow(rules, path, common);
    if (r == -EACCES)
        r = 0; /* this process cannot reach it either */
    return r < 0 || rights == common ? r : allow_children(rules, path, rights & ~common);
}

/* Whether an earlier entry is at or below this path, which then has its rules. */
static bool has_rules(const struct entry *entries, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(path, entries[i].path) == 0 || is_below(entries[i].path, path))
            return true;
    return false;
}

/* The path itself, and all above. */
static int allow_nodes(struct rules *rules, const struct entry *entries, size_t i)
{
    char path[PATH_MAX];
    const size_t n = strlen(entries[i].path);
    int r = 0;
    if (n >= sizeof(path))
        return -ENAMETOOLONG;
    memcpy(path, entries[i].path, n + 1);
    for (char *slash; r == 0 && strcmp(path, "/") != 0;) {
        if (!has_rules(entries, i, path))
            r = allow_node(rules, path);
        slash = strrchr(path, '/');
        slash[slash == path] = '\0';
    }
    return r < 0 || has_rules(entries, i, path) ? r : allow_node(rules, path);
}

static int allow_all(struct rules *rules, const struct sandbox_path **ret_path)
{
    struct entry *entries;
    const size_t n = sandbox_files_listed(&entries);
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        *ret_path = entries[i].from;
        r = allow_nodes(rules, entries, i);
    }
    return r;
}

int sandbox_landlock_list(const struct sandbox_files *files, uint64_t scopes, int *ret_rules,
                          const struct sandbox_path **ret_path)
{
    struct rules rules = {.abi = landlock_abi()};
    int r;
    *ret_rules = -1;
    *ret_path = NULL;
    if (rules.abi < LANDLOCK_ABI_FILES)
        return -EOPNOTSUPP;
    r = sandbox_files_list(files, ret_path);
    if (r < 0)
        return r;
    rights_elsewhere = files->private_root ? 0 : ALL;
    rules.fd = landlock_new(rules.abi, ALL, scopes);
    if (rules.fd < 0)
        return rules.fd;
    r = allow_all(&rules, ret_path);
    if (r < 0)
        close_fd(rules.fd);
    else
        *ret_rules = rules.fd;
    return r;
}
