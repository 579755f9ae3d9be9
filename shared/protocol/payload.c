/* SPDX-License-Identifier: MIT */
#include "shared/protocol/payload.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/ring/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOB_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* As many descriptors as the kernel lets into one message (SCM_MAX_FD), so that none is cut off
 * unseen. */
#define DESCRIPTORS_MAX 253

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

static bool blob_size_is_valid(size_t size)
{
    return size > 0 && size <= PAYLOAD_BLOB_MAX;
}

static int seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, BLOB_SEALS) < 0 ? -errno : 0;
}

int payload_blob_new(size_t size, int *ret_fd, void **ret_data)
{
    _cleanup_close_ int fd = -1;
    void *data;
    int r;

    if (!blob_size_is_valid(size))
        return -EINVAL;
    fd = memory_new_fd("troupe-blob", size);
    if (fd < 0)
        return fd;
    r = fault_inject("mmap");
    if (r < 0)
        return r;
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    *ret_fd = TAKE_FD(fd);
    *ret_data = data;
    return 0;
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
    _cleanup_close_ int fd = -1;
    int r;

    if (!blob_size_is_valid(size))
        return -EINVAL;
    fd = memory_new_fd("troupe-blob", size);
    if (fd < 0)
        return fd;
    r = write_all(fd, data, size);
    if (r < 0)
        return r;
    r = seal(fd);
    if (r < 0)
        return r;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/*
 * Whether the file has memory behind its end, which fallocate() with FALLOC_FL_KEEP_SIZE gives it:
 * whoever holds the file would hold far more than its size says, and its last close would take as
 * long. Memory comes in pages of st_blksize.
 */
static bool has_hidden_memory(const struct stat *status)
{
    const uint64_t page = status->st_blksize > 0 ? (uint64_t)status->st_blksize : 1;
    const uint64_t pages = ((uint64_t)status->st_size + page - 1) / page;

    return (uint64_t)status->st_blocks * 512 > pages * page;
}

int payload_blob_check(int fd, uint64_t size)
{
    const int seals = fcntl(fd, F_GET_SEALS), mode = fcntl(fd, F_GETFL);
    struct stat status;

    if (!blob_size_is_valid(size))
        return -EPROTO;
    if (seals < 0 || (seals & BLOB_SEALS) != BLOB_SEALS)
        return -EPROTO;
    /* Opened once more through /proc: whoever is told it could not map it. */
    if (mode < 0 || (mode & O_ACCMODE) == O_WRONLY)
        return -EPROTO;
    if (fstat(fd, &status) < 0 || status.st_size < 0 || (uint64_t)status.st_size != size)
        return -EPROTO;
    return has_hidden_memory(&status) ? -EPROTO : 0;
}

int payload_blob_map(int fd, size_t size, const void **ret_data)
{
    void *data;
    int r;

    if (size == 0)
        return -EINVAL;
    r = fault_inject("mmap");
    if (r < 0)
        return r;
    /* Private: before Linux 6.7 no shared mapping of a write-sealed memfd was allowed, not even for
     * reading. Nothing is copied, since nobody can write. */
    data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    *ret_data = data;
    return 0;
}

int payload_send_fd(int socket, int fd, uint64_t serial)
{
    struct iovec data = {.iov_base = &serial, .iov_len = sizeof(serial)};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.bytes),
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Takes the first descriptor into `*ret_fd` and drops all others. Returns how many there were. */
static size_t take_descriptors(struct msghdr *message, void (*drop)(int fd), int *ret_fd)
{
    size_t count = 0;

    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        size_t bytes = header->cmsg_len - CMSG_LEN(0);

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
            int fd;

            memcpy(&fd, CMSG_DATA(header) + at, sizeof(fd));
            if (count++ == 0)
                *ret_fd = fd;
            else
                drop(fd);
        }
    }
    return count;
}

int payload_receive_fd(int socket, uint64_t serial, void (*drop)(int fd), int *ret_fd)
{
    int fd = -1;
    uint64_t received = 0;
    struct iovec data = {.iov_base = &received, .iov_len = sizeof(received)};
    union control control;
    struct msghdr message = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t size;
    size_t count;
    int r = fault_inject("receive");

    if (r < 0)
        return r;
    size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < 0)
        return errno == EINTR || errno == ENOMEM ? -errno : -EPROTO;
    count = take_descriptors(&message, drop, &fd);
    /* There was room for any number: if even the first one is missing, our own table is full. */
    if (count == 0 && (message.msg_flags & MSG_CTRUNC))
        return -EMFILE;
    if (count != 1 || size != sizeof(received) || received != serial ||
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        if (fd >= 0)
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
    int r;

    r = payload_receive_fd(socket, wire->serial, payload_drop_fd, &fd);
    if (r == 0)
        r = payload_blob_check(fd, wire->size);
    if (r == 0)
        r = payload_blob_map(fd, (size_t)wire->size, ret_data);
    return r;
}
