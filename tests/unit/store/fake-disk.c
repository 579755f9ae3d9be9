/* SPDX-License-Identifier: MIT */
#include "tests/unit/store/fake-disk.h"

#include "shared/base/cleanup.h"
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK      4096
#define BLOCKS_MAX 4096
#define IMAGES_MAX 64

/* What is on disk of a file, and which of its blocks were written since the last sync. */
struct image {
    char path[PATH_MAX];
    uint8_t *data;
    size_t size;
    bool dirty[BLOCKS_MAX];
};

struct file {
    sqlite3_file base;
    struct image *image; /* NULL = not modelled */
    sqlite3_file *real;  /* behind this struct */
};

/* The test changes the faults between transactions; the storage thread reads them. */
static struct {
    sqlite3_vfs vfs, *real;
    struct image images[IMAGES_MAX];
    size_t n_images;
    _Atomic enum fake_fault fault;
    _Atomic unsigned nth, n, n_failed;
    const char *_Atomic full_while;
    _Atomic bool frozen;
} disk;

/* Whether this operation of that kind fails. */
static bool fails(enum fake_fault fault)
{
    if (disk.fault != fault)
        return false;
    unsigned before = atomic_load(&disk.nth);
    if (before > 1) {
        atomic_store(&disk.nth, before - 1);
        return false;
    }
    if (atomic_load(&disk.n) == 0)
        return false;
    atomic_fetch_sub(&disk.n, 1);
    atomic_fetch_add(&disk.n_failed, 1);
    return true;
}

static int fail_write(void)
{
    const char *full_while = disk.full_while;

    if (fails(FAKE_ENOSPC) || (full_while && access(full_while, F_OK) == 0))
        return SQLITE_FULL;
    return fails(FAKE_EIO_ON_WRITE) ? SQLITE_IOERR_WRITE : SQLITE_OK;
}

static sqlite3_file *real(sqlite3_file *base)
{
    return ((struct file *)base)->real;
}

/* ---- images ---- */

static void image_read(struct image *image)
{
    _cleanup_close_ int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    struct stat status;

    ck_assert(fd >= 0 && fstat(fd, &status) == 0);
    image->size = (size_t)status.st_size;
    image->data = realloc(image->data, image->size + 1);
    ck_assert_int_eq(pread(fd, image->data, image->size, 0), status.st_size);
    memset(image->dirty, 0, sizeof(image->dirty));
}

/* The image of a file, which is on disk as it is when it is opened first. One that is empty has
 * been removed meanwhile. */
static struct image *image_of(const char *path)
{
    struct image *image = disk.images;
    struct stat status;

    for (; image < disk.images + disk.n_images; image++)
        if (strcmp(image->path, path) == 0) {
            if (stat(path, &status) == 0 && status.st_size == 0 && !disk.frozen)
                image->size = 0;
            return image;
        }
    ck_assert_uint_lt(disk.n_images, IMAGES_MAX);
    disk.n_images++;
    (void)snprintf(image->path, sizeof(image->path), "%s", path);
    image_read(image);
    return image;
}

static void image_sync(struct image *image)
{
    _cleanup_close_ int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    struct stat status;

    ck_assert(fd >= 0 && fstat(fd, &status) == 0);
    image->data = realloc(image->data, (size_t)status.st_size + 1);
    if ((size_t)status.st_size > image->size)
        memset(image->data + image->size, 0, (size_t)status.st_size - image->size);
    image->size = (size_t)status.st_size;
    for (size_t at = 0; at < image->size; at += BLOCK)
        if (image->dirty[at / BLOCK])
            ck_assert_int_gt(pread(fd, image->data + at,
                                   image->size - at < BLOCK ? image->size - at : BLOCK, (off_t)at),
                             0);
}

static void image_write(const struct image *image)
{
    _cleanup_close_ int fd = open(image->path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(pwrite(fd, image->data, image->size, 0), (ssize_t)image->size);
}

void fake_disk_cut_power(void)
{
    disk.frozen = true;
}

void fake_disk_power_on(void)
{
    for (size_t i = 0; i < disk.n_images; i++)
        image_write(&disk.images[i]);
    disk.frozen = false;
}

/* ---- files ---- */

static int on_close(sqlite3_file *base)
{
    return real(base)->pMethods->xClose(real(base));
}

static int on_read(sqlite3_file *base, void *to, int size, sqlite3_int64 at)
{
    return fails(FAKE_EIO_ON_READ) ? SQLITE_IOERR_READ
                                   : real(base)->pMethods->xRead(real(base), to, size, at);
}

static int on_write(sqlite3_file *base, const void *from, int size, sqlite3_int64 at)
{
    struct image *image = ((struct file *)base)->image;
    const int r = fail_write();

    if (r != SQLITE_OK)
        return r;
    if (image)
        for (sqlite3_int64 block = at / BLOCK; block <= (at + size - 1) / BLOCK; block++) {
            ck_assert_int_lt(block, BLOCKS_MAX);
            image->dirty[block] = true;
        }
    return real(base)->pMethods->xWrite(real(base), from, size, at);
}

static int on_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    return real(base)->pMethods->xTruncate(real(base), size);
}

static int on_sync(sqlite3_file *base, int flags)
{
    struct image *image = ((struct file *)base)->image;
    const bool failed = fails(FAKE_EIO_ON_SYNC);

    if (image && !disk.frozen) {
        if (!failed)
            image_sync(image);
        memset(image->dirty, 0, sizeof(image->dirty));
    }
    return failed ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int on_file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    return real(base)->pMethods->xFileSize(real(base), ret);
}

static int on_lock(sqlite3_file *base, int lock)
{
    return real(base)->pMethods->xLock(real(base), lock);
}

static int on_unlock(sqlite3_file *base, int lock)
{
    return real(base)->pMethods->xUnlock(real(base), lock);
}

static int on_check_lock(sqlite3_file *base, int *ret)
{
    return real(base)->pMethods->xCheckReservedLock(real(base), ret);
}

static int on_control(sqlite3_file *base, int operation, void *argument)
{
    return real(base)->pMethods->xFileControl(real(base), operation, argument);
}

static int on_sector_size(sqlite3_file *base)
{
    return real(base)->pMethods->xSectorSize(real(base));
}

static int on_characteristics(sqlite3_file *base)
{
    return real(base)->pMethods->xDeviceCharacteristics(real(base));
}

static int on_shm_map(sqlite3_file *base, int page, int size, int extend, void volatile **ret)
{
    return real(base)->pMethods->xShmMap(real(base), page, size, extend, ret);
}

static int on_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
    return real(base)->pMethods->xShmLock(real(base), offset, n, flags);
}

static void on_shm_barrier(sqlite3_file *base)
{
    real(base)->pMethods->xShmBarrier(real(base));
}

static int on_shm_unmap(sqlite3_file *base, int remove)
{
    return real(base)->pMethods->xShmUnmap(real(base), remove);
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_characteristics,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *base, int flags,
                   int *ret_flags)
{
    struct file *file = (struct file *)base;

    file->real = (sqlite3_file *)(file + 1);
    file->image = NULL;
    int r = disk.real->xOpen(disk.real, path, file->real, flags, ret_flags);
    base->pMethods = file->real->pMethods ? &METHODS : NULL;
    if (r == SQLITE_OK &&
        (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_SUPER_JOURNAL)))
        file->image = image_of(path);
    return r;
}

void fake_disk_init(void)
{
    ck_assert_int_eq(sqlite3_initialize(), SQLITE_OK);
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.zName = FAKE_DISK;
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile = (int)sizeof(struct file) + disk.real->szOsFile;
    disk.vfs.xOpen = on_open;
    ck_assert_int_eq(sqlite3_vfs_register(&disk.vfs, 0), SQLITE_OK);
}

void fake_disk_deinit(void)
{
    (void)sqlite3_vfs_unregister(&disk.vfs);
    for (size_t i = 0; i < disk.n_images; i++)
        free(disk.images[i].data);
    memset(&disk.images, 0, sizeof(disk.images));
    disk.n_images = 0;
    disk.frozen = false;
}

void fake_disk_fail(enum fake_fault fault, unsigned nth, unsigned n)
{
    atomic_store(&disk.nth, nth);
    atomic_store(&disk.n, n);
    atomic_store(&disk.n_failed, 0);
    atomic_store(&disk.fault, fault);
}

unsigned fake_disk_n_failed(void)
{
    return disk.n_failed;
}

void fake_disk_full_while(const char *path)
{
    disk.full_while = path;
}
