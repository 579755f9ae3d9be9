/* SPDX-License-Identifier: MIT */
#include "worker/worker/private-tmp.h"

#include "shared/base/cleanup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of the file system whose directories the supervisor mounts there
 * (keeper/sandbox-files.c). */
#define SOURCE "troupe"

/* ---- choosing the directories ---- */

/* Of several mounts at one place, the last one is on top. */
static int find_mount(const char *path, bool *ret)
{
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    size_t size = 0;

    *ret = false;
    if (!mounts)
        return -errno;
    while (getline(&line, &size, mounts) > 0) {
        char place[64], type[16], source[16];
        const char *rest = strstr(line, " - ");

        if (sscanf(line, "%*s %*s %*s %*s %63s", place) != 1 || strcmp(place, path) != 0)
            continue;
        *ret = rest && sscanf(rest, " - %15s %15s", type, source) == 2 &&
               strcmp(type, "tmpfs") == 0 && strcmp(source, SOURCE) == 0;
    }
    free(line);
    (void)fclose(mounts);
    return 0;
}

int private_tmp_open(struct private_tmp *tmp)
{
    static const char *const paths[PRIVATE_TMPS] = {"/tmp", "/var/tmp"};

    tmp->used = true; /* perhaps before the first job */
    for (size_t i = 0; i < PRIVATE_TMPS; i++) {
        bool found;
        int r = find_mount(paths[i], &found);

        if (r == 0 && found)
            r = tmp->fds[tmp->n_fds] = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r < 0)
            return found ? -errno : r;
        tmp->n_fds += found;
    }
    return 0;
}

void private_tmp_deinit(struct private_tmp *tmp)
{
    while (tmp->n_fds > 0)
        close_fd(tmp->fds[--tmp->n_fds]);
}

/* ---- removal ---- */

static DIR *open_directory(int parent, const char *name)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;

    if (!directory)
        close_fd(fd);
    return directory;
}

static const char *next_name(DIR *directory)
{
    struct dirent *entry;

    do
        entry = readdir(directory);
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

/* Returns 0 if the entry must stay: it is a mount point, or another user's. */
static int error_at(int parent, const char *name, int error)
{
    struct stat status;

    if (error == EBUSY || error == ENOENT)
        return 0;
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_uid != geteuid())
        return 0;
    return -error;
}

/* Moves a directory to the top: trees of any depth need few descriptors in this way. */
static int move_up(int top, int parent, const char *name)
{
    static unsigned number;
    char unique[32];
    int r;

    if (fchmodat(parent, name, 0700, 0) < 0)
        return error_at(parent, name, errno);
    do {
        (void)snprintf(unique, sizeof(unique), "troupe-%u", number++);
        r = renameat2(parent, name, top, unique, RENAME_NOREPLACE);
    } while (r < 0 && errno == EEXIST);
    return r == 0 ? 1 : error_at(parent, name, errno);
}

/* Each returns 1 if the entry has gone from its directory, 0 if it stays, or -errno. */
static int remove_or_move(int top, int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0)
        return 1;
    if (errno != EISDIR && errno != EPERM)
        return error_at(parent, name, errno);
    if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
        return 1;
    if (errno != ENOTEMPTY)
        return error_at(parent, name, errno);
    return move_up(top, parent, name);
}

static bool is_same_file_system(int a, int b)
{
    struct stat left, right;

    return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_dev == right.st_dev;
}

static int remove_directory(int top, const char *name)
{
    bool changed = false;
    DIR *directory;
    int r = 0;

    directory = fchmodat(top, name, 0700, 0) == 0 ? open_directory(top, name) : NULL;
    if (!directory)
        return error_at(top, name, errno);
    if (!is_same_file_system(top, dirfd(directory))) {
        (void)closedir(directory);
        return 0;
    }
    for (const char *inner; r >= 0 && (inner = next_name(directory));) {
        r = remove_or_move(top, dirfd(directory), inner);
        changed = changed || r > 0;
    }
    (void)closedir(directory);
    if (r < 0)
        return r;
    /* If it is not empty, entries in it stay. */
    return unlinkat(top, name, AT_REMOVEDIR) == 0 || changed;
}

static int remove_entry(int top, const char *name)
{
    if (unlinkat(top, name, 0) == 0)
        return 1;
    if (errno != EISDIR && errno != EPERM)
        return error_at(top, name, errno);
    /* Before any of its entries is removed, this also shows whether it is a mount point. */
    if (unlinkat(top, name, AT_REMOVEDIR) == 0)
        return 1;
    return errno == ENOTEMPTY ? remove_directory(top, name) : error_at(top, name, errno);
}

/* Returns whether an entry was removed, so that there may be more to do; or -errno. */
static int empty_once(int top)
{
    DIR *directory = open_directory(top, ".");
    bool changed = false;
    int r = directory ? 0 : -errno;

    for (const char *name; r >= 0 && (name = next_name(directory));) {
        r = remove_entry(top, name);
        changed = changed || r > 0;
    }
    if (directory)
        (void)closedir(directory);
    return r < 0 ? r : changed;
}

int private_tmp_empty(struct private_tmp *tmp)
{
    int r = 0;

    if (!tmp->used)
        return 0;
    for (size_t i = 0; r >= 0 && i < tmp->n_fds; i++)
        do
            r = empty_once(tmp->fds[i]);
        while (r > 0);
    tmp->used = r < 0;
    return r < 0 ? r : 0;
}
