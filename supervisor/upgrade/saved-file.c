/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/saved-file.h"

#include "shared/base/cleanup.h"
#include "supervisor/channel/payload.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pack is written when it has so many bytes. */
#define PACK_SIZE ((size_t)256 << 10)

/* ---- writing ---- */

static int write_all(int fd, const struct saved_writer *bytes)
{
    size_t done = 0;

    while (done < bytes->size) {
        ssize_t n = write(fd, bytes->bytes + done, bytes->size - done);

        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return bytes->failed ? -ENOMEM : 0;
}

static int write_blob(int fd, const struct payload *blob)
{
    off_t at = 0;

    while (at < (off_t)blob->size) {
        ssize_t n = sendfile(fd, blob->fd, &at, (size_t)blob->size - (size_t)at);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return -EIO; /* a blob is sealed, and has its size */
    }
    return 0;
}

/* Writes the pack; `more` bytes of it follow. */
static int write_pack(struct file_writer *writer, uint64_t more)
{
    struct saved_writer head = {0};
    int r;

    if (!writer->kind)
        return 0;
    saved_put_text(&head, writer->kind);
    saved_put_number(&head, writer->pack.size + more);
    r = write_all(writer->fd, &head);
    free(head.bytes);
    if (r == 0)
        r = write_all(writer->fd, &writer->pack);
    writer->kind = NULL;
    writer->pack.size = 0;
    return r;
}

static int add_row(struct saver *saver, const char *kind, const struct saved_writer *row,
                   const struct payload *payload)
{
    struct file_writer *writer = list_entry(saver, struct file_writer, saver);
    const uint64_t size = payload ? payload->size : 0;
    int r = 0;

    if (writer->kind != kind || writer->pack.size >= PACK_SIZE)
        r = write_pack(writer, 0);
    writer->kind = kind;
    saved_put_bytes(&writer->pack, row->bytes, row->size);
    saved_put_number(&writer->pack, size);
    if (!payload || payload->fd < 0) {
        saved_put_raw(&writer->pack, payload ? payload_data(payload) : NULL, (size_t)size);
        return writer->pack.failed ? -ENOMEM : r;
    }
    if (r == 0)
        r = write_pack(writer, size);
    return r == 0 ? write_blob(writer->fd, payload) : r;
}

int file_writer_open(struct file_writer *writer, const char *path, uint64_t layout)
{
    *writer = (struct file_writer){.saver.add = add_row};
    (void)unlink(path);
    writer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writer->fd < 0)
        return -errno;
    saved_put_number(&writer->pack, layout);
    if (write_all(writer->fd, &writer->pack) == 0) {
        writer->pack.size = 0;
        return 0;
    }
    file_writer_close(writer);
    return -EIO;
}

int file_writer_flush(struct file_writer *writer)
{
    return writer->saver.error < 0 ? writer->saver.error : write_pack(writer, 0);
}

void file_writer_close(struct file_writer *writer)
{
    writer->fd = close_fd(writer->fd);
    free(TAKE_PTR(writer->pack.bytes));
}

/* ---- reading ---- */

struct saved_file {
    const uint8_t *bytes; /* mapped */
    size_t size;
};

static struct saved_reader reader_of(const struct saved_file *file)
{
    return (struct saved_reader){.at = file->bytes, .end = file->bytes + file->size, .payload = ""};
}

/* Returns whether all packs are whole. */
static bool is_whole(const struct saved_file *file, uint64_t layout)
{
    struct saved_reader packs = reader_of(file);

    if (file->size == 0 || saved_get_number(&packs) != layout)
        return false;
    while (saved_has_more(&packs)) {
        (void)saved_get_string(&packs);
        (void)saved_get_fields(&packs);
    }
    return !packs.damaged;
}

static int map(struct saved_file *file, int fd)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    /* In a directory of all users, somebody else may have left one of this name. */
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
        return -EPERM;
    if (status.st_size == 0)
        return 0;
    file->bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file->bytes == MAP_FAILED) {
        file->bytes = NULL;
        return -errno;
    }
    file->size = (size_t)status.st_size;
    return 0;
}

int saved_file_open(struct saved_file **ret, const char *path, uint64_t layout)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct saved_file *file;
    int r;

    if (fd < 0)
        return errno == ELOOP ? -EPERM : -errno;
    file = calloc(1, sizeof(*file));
    if (!file)
        return -ENOMEM;
    r = map(file, fd);
    if (r == 0 && !is_whole(file, layout))
        r = -EUCLEAN;
    if (r < 0)
        (void)saved_file_close(file);
    else
        *ret = file;
    return r;
}

struct saved_file *saved_file_close(struct saved_file *file)
{
    if (file && file->bytes)
        (void)munmap((void *)(uintptr_t)file->bytes, file->size);
    free(file);
    return NULL;
}

static uint64_t scan_pack(struct saved_reader *pack, row_fn fn, void *userdata)
{
    uint64_t n_refused = 0;

    while (saved_has_more(pack)) {
        struct saved_reader row = saved_get_fields(pack);

        row.payload = saved_get_bytes(pack, &row.payload_size);
        if (pack->damaged || fn(userdata, &row) < 0)
            n_refused++;
    }
    return n_refused;
}

uint64_t saved_file_scan(const struct saved_file *file, const char *kind, row_fn fn, void *userdata)
{
    struct saved_reader packs = reader_of(file);
    uint64_t n_refused = 0;

    (void)saved_get_number(&packs); /* the layout */
    while (saved_has_more(&packs)) {
        const char *found = saved_get_string(&packs);
        struct saved_reader pack = saved_get_fields(&packs);

        if (found && strcmp(found, kind) == 0)
            n_refused += scan_pack(&pack, fn, userdata);
    }
    return n_refused;
}
