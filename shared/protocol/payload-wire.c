/* SPDX-License-Identifier: MIT */
#include "shared/protocol/payload-wire.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/scm.h"
#include "shared/ring/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BLOB_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static bool blob_size_is_valid(size_t size)
{
    return size > 0 && size <= PAYLOAD_BLOB_MAX;
}

static int seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, BLOB_SEALS) < 0 ? -errno : 0;
}

/* Returns an empty blob of `size` bytes, or -errno. */
static int new_blob(size_t size)
{
    return blob_size_is_valid(size) ? memory_new_fd("troupe-blob", size) : -EINVAL;
}

static int map(int fd, size_t size, int protection, int flags, void **ret_data)
{
    void *data;
    int r = fault_inject("mmap");

    if (r < 0)
        return r;
    data = mmap(NULL, size, protection, flags, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    *ret_data = data;
    return 0;
}

int payload_blob_new(size_t size, int *ret_fd, void **ret_data)
{
    _cleanup_close_ int fd = new_blob(size);
    int r;

    if (fd < 0)
        return fd;
    r = map(fd, size, PROT_READ | PROT_WRITE, MAP_SHARED, ret_data);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    return r;
}

int payload_blob_seal(int fd, void *data, size_t size)
{
    /* While a writable mapping exists, the kernel refuses F_SEAL_WRITE. */
    if (munmap(data, size) < 0)
        return -errno;
    return seal(fd);
}

/* The file's position, which every holder of the descriptor shares, stays at its beginning. One
 * call writes at most 2 GiB. */
static int write_all(int fd, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        int r = fault_inject("write");
        ssize_t n;

        if (r < 0)
            return r;
        n = pwrite(fd, data + done, size - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            done += (size_t)n;
    }
    return 0;
}

int payload_blob_copy(const void *data, size_t size, int *ret_fd)
{
    _cleanup_close_ int fd = new_blob(size);
    int r;

    if (fd < 0)
        return fd;
    r = write_all(fd, data, size);
    if (r == 0)
        r = seal(fd);
    if (r == 0)
        *ret_fd = TAKE_FD(fd);
    return r;
}

/* Returns whether the file has memory beyond its end, allocated by fallocate() with
 * FALLOC_FL_KEEP_SIZE: it would use far more memory than it is accounted for, and its last close
 * could take long. Memory is allocated in pages of st_blksize. */
static bool has_hidden_memory(const struct stat *status)
{
    const uint64_t page = status->st_blksize > 0 ? (uint64_t)status->st_blksize : 1;
    const uint64_t pages = ((uint64_t)status->st_size + page - 1) / page;

    return (uint64_t)status->st_blocks * 512 > pages * page;
}

/* A file of huge pages (MFD_HUGETLB) also takes seals, but a recipient that maps it needs huge
 * pages, which the kernel may lack. */
static bool has_ordinary_pages(int fd)
{
    struct statfs status;

    return fstatfs(fd, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

int payload_blob_check(int fd, uint64_t size)
{
    const int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);
    struct stat status;

    if (!blob_size_is_valid(size))
        return -EPROTO;
    if (seals < 0 || (seals & BLOB_SEALS) != BLOB_SEALS)
        return -EPROTO;
    /* Opened write-only, for instance through /proc: a recipient could not map it. */
    if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY)
        return -EPROTO;
    if (fstat(fd, &status) < 0 || status.st_size < 0 || (uint64_t)status.st_size != size)
        return -EPROTO;
    return has_hidden_memory(&status) || !has_ordinary_pages(fd) ? -EPROTO : 0;
}

int payload_blob_map(int fd, size_t size, const void **ret_data)
{
    if (size == 0)
        return -EINVAL;
    /* Private, because before Linux 6.7 a write-sealed memfd could not be mapped shared, not even
     * for reading. No page is copied, since nothing writes to it. */
    return map(fd, size, PROT_READ, MAP_PRIVATE, (void **)(uintptr_t)ret_data);
}

int payload_send_fd(int socket, int fd, uint64_t serial)
{
    const struct iovec data = {.iov_base = &serial, .iov_len = sizeof(serial)};

    return scm_send(socket, data, &fd, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int payload_receive_any(int socket, uint64_t *ret_serial, void (*drop)(int fd), int *ret_fd)
{
    int fd = -1;
    struct iovec data = {.iov_base = ret_serial, .iov_len = sizeof(*ret_serial)};
    union scm_control control;
    struct msghdr message = SCM_MESSAGE(&data, &control);
    ssize_t size;
    size_t count;
    int r = fault_inject("receive");

    if (r < 0)
        return r;
    size = scm_receive(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0)
        return errno == EINTR || errno == ENOMEM ? -errno : -EPROTO;
    count = scm_take(&message, &fd, 1, drop);
    /* There was room for all descriptors: if none arrived, the table of this process is full. */
    if (count == 0 && (message.msg_flags & MSG_CTRUNC))
        return -EMFILE;
    if (count != 1 || size != sizeof(*ret_serial) ||
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        if (fd >= 0)
            drop(fd);
        return -EPROTO;
    }
    *ret_fd = fd;
    return 0;
}

int payload_receive_fd(int socket, uint64_t serial, void (*drop)(int fd), int *ret_fd)
{
    uint64_t received;
    int fd = -1, r = payload_receive_any(socket, &received, drop, &fd);

    if (r < 0)
        return r;
    if (received != serial) {
        drop(fd);
        return -EPROTO;
    }
    *ret_fd = fd;
    return 0;
}

void payload_drop_fd(int fd)
{
    (void)close_fd(fd);
}

int payload_receive_blob(int socket, const struct payload_wire *wire, const void **ret_data)
{
    _cleanup_close_ int fd = -1;
    int r = payload_receive_fd(socket, wire->serial, payload_drop_fd, &fd);

    if (r == 0)
        r = payload_blob_check(fd, wire->size);
    if (r == 0)
        r = payload_blob_map(fd, (size_t)wire->size, ret_data);
    return r;
}
