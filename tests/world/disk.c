/* SPDX-License-Identifier: MIT */
#include "tests/world/disk.h"

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

/* A file, with the sectors that have been written since the last sync, as they were then. */
struct image {
    struct list link;
    char path[256];
    ino_t inode;
    sqlite3_int64 size; /* at the last sync */
    uint8_t **sectors;  /* by number; NULL = not written */
    sqlite3_int64 n_sectors;
};

/* A file that is open. Its methods are those of the system but for some. */
struct file {
    struct list link; /* in files */
    sqlite3_file *base;
    const sqlite3_io_methods *real;
    sqlite3_io_methods methods;
    const struct sim_process *process;
    struct image *image;
    uint16_t shared, exclusive; /* locks of the shared memory */
};

static sqlite3_vfs *system_vfs, vfs;
static struct list images = {&images, &images}, files = {&files, &files};
static bool is_full;

static struct file *file_of(const sqlite3_file *base)
{
    list_for_each (node, &files)
        if (list_entry(node, struct file, link)->base == base)
            return list_entry(node, struct file, link);
    abort();
}

/* ---- what is not synced ---- */

static void forget_sectors(struct image *image, sqlite3_int64 from)
{
    for (sqlite3_int64 i = from; i < image->n_sectors; i++) {
        free(image->sectors[i]);
        image->sectors[i] = NULL;
    }
    image->n_sectors = from < image->n_sectors ? from : image->n_sectors;
}

static void on_synced(struct image *image)
{
    struct stat status;

    forget_sectors(image, 0);
    image->size = stat(image->path, &status) == 0 ? status.st_size : 0;
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
    struct stat status;

    if (!image) {
        image = calloc(1, sizeof(*image));
        (void)snprintf(image->path, sizeof(image->path), "%s", path);
        list_init(&image->link);
        list_push_back(&images, &image->link);
        on_synced(image);
    }
    image->inode = stat(path, &status) == 0 ? status.st_ino : 0;
    return image;
}

static void drop_image(const char *path)
{
    struct image *image = find_image(path);

    if (!image)
        return;
    forget_sectors(image, 0);
    image->size = 0;
}

static uint8_t **sector_of(struct image *image, sqlite3_int64 number)
{
    if (number >= image->n_sectors) {
        image->sectors = realloc(image->sectors, (size_t)(number + 1) * sizeof(uint8_t *));
        while (image->n_sectors <= number)
            image->sectors[image->n_sectors++] = NULL;
    }
    return &image->sectors[number];
}

static void remember(const struct file *file, sqlite3_int64 at, int n)
{
    for (sqlite3_int64 i = at / SECTOR; file->image && i <= (at + n - 1) / SECTOR; i++) {
        uint8_t **sector = sector_of(file->image, i);

        if (*sector)
            continue;
        *sector = calloc(1, SECTOR);
        (void)file->real->xRead(file->base, *sector, SECTOR, i * SECTOR);
    }
}

static void lose(struct image *image)
{
    const uint64_t how = sim_below(3); /* nothing, everything, or some sectors */
    _cleanup_close_ int fd = open(image->path, O_WRONLY | O_CLOEXEC);

    for (sqlite3_int64 i = 0; i < image->n_sectors; i++)
        if (image->sectors[i] && fd >= 0 && (how == 1 || (how == 2 && sim_one_in(2))))
            (void)!pwrite(fd, image->sectors[i], SECTOR, i * SECTOR);
    if (fd >= 0 && how == 1)
        (void)!ftruncate(fd, image->size);
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

void disk_on_sync(int fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return;
    list_for_each (node, &images)
        if (list_entry(node, struct image, link)->inode == status.st_ino)
            on_synced(list_entry(node, struct image, link));
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
    const int r = file->real->xClose(base);

    list_unlink(&file->link);
    free(file);
    return r;
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
    remember(file, at, n);
    return file->real->xWrite(base, bytes, n, at);
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *file = file_of(base);

    if (file->image) {
        forget_sectors(file->image, size / SECTOR);
        file->image->size = file->image->size < size ? file->image->size : size;
    }
    return file->real->xTruncate(base, size);
}

static int on_sync(sqlite3_file *base, int flags)
{
    struct file *file = file_of(base);

    (void)flags; /* memory has no platter */
    if (fails("disk.sync", file))
        return SQLITE_IOERR_FSYNC;
    if (file->image)
        on_synced(file->image);
    return SQLITE_OK;
}

static int on_shm_lock(sqlite3_file *base, int from, int n, int flags)
{
    struct file *file = file_of(base);
    const uint16_t mask = (uint16_t)(((1u << n) - 1) << from);
    uint16_t *held = flags & SQLITE_SHM_SHARED ? &file->shared : &file->exclusive;
    const int r = file->real->xShmLock(base, from, n, flags);

    if (r == SQLITE_OK)
        *held = (uint16_t)(flags & SQLITE_SHM_UNLOCK ? *held & ~mask : *held | mask);
    return r;
}

static int on_open(sqlite3_vfs *unused, const char *path, sqlite3_file *base, int flags, int *ret)
{
    const int r = system_vfs->xOpen(system_vfs, path, base, flags, ret);
    struct file *file;

    (void)unused;
    if (r != SQLITE_OK)
        return r;
    file = calloc(1, sizeof(*file));
    *file = (struct file){.base = base, .real = base->pMethods, .process = sim_self()};
    file->image = path ? take_image(path) : NULL;
    file->methods = *file->real;
    file->methods.iVersion = 2; /* no mappings */
    file->methods.xClose = on_close;
    file->methods.xRead = on_read;
    file->methods.xWrite = on_write;
    file->methods.xTruncate = on_truncate;
    file->methods.xSync = on_sync;
    file->methods.xShmLock = on_shm_lock;
    base->pMethods = &file->methods;
    list_init(&file->link);
    list_push_back(&files, &file->link);
    return r;
}

/* As if the directory was synced with it. */
static int on_delete(sqlite3_vfs *unused, const char *path, int syncs)
{
    (void)unused;
    drop_image(path);
    return system_vfs->xDelete(system_vfs, path, syncs);
}

void disk_init(void)
{
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "world";
    vfs.xOpen = on_open;
    vfs.xDelete = on_delete;
    (void)sqlite3_vfs_register(&vfs, 1);
}

/* ---- processes ---- */

static void unlock(const struct file *file)
{
    for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
        if (file->shared & 1u << i)
            (void)on_shm_lock(file->base, i, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED);
        if (file->exclusive & 1u << i)
            (void)on_shm_lock(file->base, i, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    }
    (void)file->real->xShmUnmap(file->base, 0);
    (void)file->real->xUnlock(file->base, SQLITE_LOCK_NONE);
}

void disk_forget(const struct sim_process *process)
{
    list_for_each_safe (node, &files) {
        struct file *file = list_entry(node, struct file, link);

        if (file->process != process)
            continue;
        unlock(file);
        (void)on_close(file->base);
    }
}
