/* SPDX-License-Identifier: MIT */

/* Which of the paths count, and where they really are. */

#include "shared/base/cleanup.h"
#include "supervisor/keeper/sandbox-files-private.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RESOLVED_MAX ((size_t)64 * 1024)
#define KEPT_MAX     64

static struct entry entries[SANDBOX_PATHS_MAX + KEPT_MAX];
static size_t n_entries;
static char resolved[RESOLVED_MAX];
static size_t n_resolved;
static struct sandbox_path kept[KEPT_MAX];
static size_t n_kept;
static struct sandbox_link links[SANDBOX_PATHS_MAX];
static size_t n_links;

/* The path has such a link in it, and may itself be one. */
static void remember_link(const struct entry *entry)
{
    links[n_links++] = (struct sandbox_link){.from = entry->from->path, .to = entry->path};
}

static int resolve_links(struct entry *entry)
{
    _cleanup_close_ int fd = open(entry->from->path, O_PATH | O_CLOEXEC);
    char *const to = resolved + n_resolved;
    const size_t room = RESOLVED_MAX - n_resolved;
    char link[32];
    if (fd < 0)
        return -errno;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, to, room);
    if (n < 0)
        return -errno;
    if ((size_t)n == room)
        return -ENAMETOOLONG;
    to[n] = '\0';
    entry->path = to;
    n_resolved += (size_t)n + 1;
    remember_link(entry);
    return 0;
}

static int resolve(struct entry *entry)
{
    _cleanup_close_ int fd = mount_open(entry->from->path);
    if (fd == -ELOOP)
        return resolve_links(entry);
    return fd < 0 ? fd : 0;
}

static bool is_below(const char *path, const char *directory)
{
    const size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || directory[n - 1] == '/');
}

static bool is_hidden(const struct entry *entry)
{
    for (size_t i = 0; i < n_entries; i++)
        if (entries[i].from->kind == SANDBOX_INACCESSIBLE && is_below(entry->path, entries[i].path))
            return true;
    return false;
}

static int compare(const struct entry *a, const struct entry *b)
{
    const int order = strcmp(a->path, b->path);
    return order != 0 ? order : (int)a->from->kind - (int)b->from->kind;
}

/* Insertion: usually the list is sorted already. */
static void insert(struct entry entry)
{
    size_t i = n_entries++;
    for (; i > 0 && compare(&entry, &entries[i - 1]) < 0; i--)
        entries[i] = entries[i - 1];
    entries[i] = entry;
}

/* Shown already. */
static bool is_shown(const struct entry *entry)
{
    for (size_t i = n_entries; entry->from->kind == SANDBOX_VISIBLE && i > 0; i--)
        if (is_below(entry->path, entries[i - 1].path))
            return entries[i - 1].from->kind == SANDBOX_VISIBLE;
    return false;
}

/* Parents come first. */
static void drop_what_does_not_count(void)
{
    const size_t n = n_entries;
    n_entries = 0;
    for (size_t i = 0; i < n; i++) {
        const struct entry entry = entries[i];
        struct entry *last = n_entries > 0 ? &entries[n_entries - 1] : NULL;
        if (last && strcmp(last->path, entry.path) == 0)
            last->read_only |= entry.from->kind == SANDBOX_READ_ONLY;
        else if (!is_hidden(&entry) && !is_shown(&entry))
            entries[n_entries++] = entry;
    }
}

/* ---- what is mounted below /proc ---- */

static bool is_kept(const char *path)
{
    for (size_t i = 0; i < n_kept; i++)
        if (strcmp(path, kept[i].path) == 0 || is_below(path, kept[i].path))
            return true;
    return false;
}

static int keep(const char *path)
{
    const size_t size = strlen(path) + 1;
    if (n_kept == KEPT_MAX || size > RESOLVED_MAX - n_resolved)
        return -E2BIG;
    memcpy(resolved + n_resolved, path, size);
    kept[n_kept] = (struct sandbox_path){SANDBOX_UNCHANGED, true, resolved + n_resolved};
    n_resolved += size;
    insert((struct entry){.from = &kept[n_kept], .path = kept[n_kept].path, .tree = -1});
    n_kept++;
    return 0;
}

static int keep_if_below_proc(const char *path)
{
    return is_below(path, "/proc") && !is_kept(path) ? keep(path) : 0;
}

/* In a container or with ProtectKernelTunables= of a unit, such mounts protect what a fresh /proc
 * would lay open. A clone of such a mount also has the mounts below it. */
static int keep_mounts_of_proc(void)
{
    return mount_may_have_children("/proc") ? mount_each(keep_if_below_proc) : 0;
}

bool sandbox_files_has_proc(const struct sandbox_files *files)
{
    for (size_t i = 0; i < files->n_paths; i++)
        if (files->paths[i].kind == SANDBOX_PROC)
            return true;
    return false;
}

static int list_paths(const struct sandbox_files *files, const struct sandbox_path **ret_path)
{
    n_entries = n_kept = n_resolved = n_links = 0;
    for (size_t i = 0; i < files->n_paths; i++) {
        const struct sandbox_path *path = &files->paths[i];
        struct entry entry = {.from = path, .path = path->path, .tree = -1};
        int r = resolve(&entry);
        if (r == -ENOENT && path->optional)
            continue;
        *ret_path = path;
        if (r < 0)
            return r;
        insert(entry);
    }
    *ret_path = NULL;
    return 0;
}

int sandbox_files_list(const struct sandbox_files *files, const struct sandbox_path **ret_path)
{
    int r = list_paths(files, ret_path);
    if (r < 0)
        return r;
    if (sandbox_files_has_proc(files))
        r = keep_mounts_of_proc();
    if (r < 0)
        return r;
    drop_what_does_not_count();
    return 0;
}

size_t sandbox_files_listed(struct entry **ret)
{
    *ret = entries;
    return n_entries;
}

size_t sandbox_files_links(const struct sandbox_link **ret)
{
    *ret = links;
    return n_links;
}
