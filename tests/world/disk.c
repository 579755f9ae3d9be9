/* SPDX-License-Identifier: MIT */
#include "tests/world/machine.h"

#include "shared/base/cleanup.h"
#include "tests/world/sched.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512

/* A file, as it was at the last sync. */
struct image {
    struct list link;
    char path[256];
    uint8_t *bytes;
    size_t size;
};

/* A file that is open, behind what the system has of it. Its methods are those of the system but
 * for some. */
struct file {
    struct list link; /* in files */
    sqlite3_file *base;
    const sqlite3_io_methods *real;
    sqlite3_io_methods methods;
    const struct sim_process *process;
    struct image *image;
};

static sqlite3_vfs *system_vfs, vfs;
static struct list images = {&images, &images}, files = {&files, &files};
static bool is_full;

static struct file *file_of(sqlite3_file *base)
{
    return (struct file *)(void *)((char *)base + system_vfs->szOsFile);
}

/* ---- what is not synced ---- */

/* Returns the size, or 0 if there is no such file. */
static size_t read_file(const char *path, uint8_t **ret)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return 0;
    *ret = realloc(*ret, (size_t)status.st_size + 1);
    return (size_t)pread(fd, *ret, (size_t)status.st_size, 0);
}

static void on_synced(struct image *image)
{
    if (sim_has(SIM_CUT_POWER))
        image->size = read_file(image->path, &image->bytes);
}

static struct image *find_image(const char *path)
{
    list_for_each (node, &images)
        if (strcmp(list_entry(node, struct image, link)->path, path) == 0)
            return list_entry(node, struct image, link);
    return NULL;
}

static struct image *take_image(const char *path)
{
    struct image *image = find_image(path);

    if (image)
        return image;
    image = calloc(1, sizeof(*image));
    (void)snprintf(image->path, sizeof(image->path), "%s", path);
    list_init(&image->link);
    list_push_back(&images, &image->link);
    on_synced(image);
    return image;
}

/* Of what has changed since the last sync, nothing remains, everything, or some sectors. */
static void lose(struct image *image)
{
    const uint64_t how = sim_below(3);
    _cleanup_close_ int fd = open(image->path, O_WRONLY | O_CLOEXEC);
    _cleanup_free_ uint8_t *now = NULL;
    const size_t size = read_file(image->path, &now);

    for (size_t at = 0; at < image->size && fd >= 0; at += SECTOR) {
        const size_t n = image->size - at < SECTOR ? image->size - at : SECTOR;
        const bool changed = at + n > size || memcmp(image->bytes + at, now + at, n) != 0;

        if (changed && (how == 1 || (how == 2 && sim_one_in(2))))
            (void)!pwrite(fd, image->bytes + at, n, (off_t)at);
    }
    if (fd >= 0 && how == 1)
        (void)!ftruncate(fd, (off_t)image->size);
    on_synced(image);
}

void disk_cut(void)
{
    list_for_each (node, &images)
        lose(list_entry(node, struct image, link));
}

void disk_fill(bool full)
{
    is_full = full;
}

int disk_on_sync(int fd)
{
    struct stat synced, status;

    list_for_each_entry (image, &images, struct image, link)
        if (fstat(fd, &synced) == 0 && stat(image->path, &status) == 0 &&
            status.st_ino == synced.st_ino)
            on_synced(image);
    return 0;
}

/* ---- files ---- */

static bool fails(const char *what, const struct file *file)
{
    sim_fault_point(what);
    if (!file->image || !sim_one_in(sim_chances[SIM_DISK_ERROR]))
        return false;
    sim_trace("%s fails", what);
    return true;
}

static int on_close(sqlite3_file *base)
{
    struct file *file = file_of(base);

    list_unlink(&file->link);
    return file->real->xClose(base);
}

static int on_read(sqlite3_file *base, void *bytes, int n, sqlite3_int64 at)
{
    const struct file *file = file_of(base);

    return fails("disk.read", file) ? SQLITE_IOERR_READ : file->real->xRead(base, bytes, n, at);
}

static int on_write(sqlite3_file *base, const void *bytes, int n, sqlite3_int64 at)
{
    const struct file *file = file_of(base);

    if (fails("disk.write", file))
        return SQLITE_IOERR_WRITE;
    if (is_full && file->image)
        return SQLITE_FULL;
    return file->real->xWrite(base, bytes, n, at);
}

static int on_sync(sqlite3_file *base, int flags)
{
    struct file *file = file_of(base);

    if (fails("disk.sync", file))
        return SQLITE_IOERR_FSYNC;
    if (file->image)
        on_synced(file->image);
    return SQLITE_OK;
}

static int on_open(sqlite3_vfs *unused, const char *path, sqlite3_file *base, int flags, int *ret)
{
    const int r = system_vfs->xOpen(system_vfs, path, base, flags, ret);
    struct file *file = file_of(base);

    if (r != SQLITE_OK)
        return r;
    *file = (struct file){.base = base, .real = base->pMethods, .process = sim_self};
    file->image = path ? take_image(path) : NULL;
    file->methods = *file->real;
    file->methods.iVersion = 2; /* no mappings */
    file->methods.xClose = on_close;
    file->methods.xRead = on_read;
    file->methods.xWrite = on_write;
    file->methods.xSync = on_sync;
    base->pMethods = &file->methods;
    list_init(&file->link);
    list_push_back(&files, &file->link);
    return r;
}

/* As if the directory was synced with it. */
static int on_delete(sqlite3_vfs *unused, const char *path, int syncs)
{
    struct image *image = find_image(path);

    if (image)
        image->size = 0;
    return system_vfs->xDelete(system_vfs, path, syncs);
}

void disk_init(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "world";
    vfs.szOsFile += (int)sizeof(struct file);
    vfs.xOpen = on_open;
    vfs.xDelete = on_delete;
    (void)sqlite3_vfs_register(&vfs, 1);
}

/* ---- processes ---- */

void disk_forget(const struct sim_process *process)
{
    list_for_each_entry_safe (file, &files, struct file, link) {
        if (file->process != process)
            continue;
        (void)file->real->xShmUnmap(file->base, 0);
        (void)on_close(file->base);
    }
}
