/* SPDX-License-Identifier: MIT */
#include "shared/protocol/payload-wire.h"
#include "shared/ring/memory.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>
#include <sys/resource.h>

static int sockets[2] = {-1, -1};

static void setup(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
}

static void teardown(void)
{
    sockets[0] = close_fd(sockets[0]);
    sockets[1] = close_fd(sockets[1]);
}

static int new_blob(const char *text, size_t size)
{
    void *data;
    int fd;

    ck_assert_int_eq(payload_blob_new(size, &fd, &data), 0);
    memcpy(data, text, size);
    ck_assert_int_eq(payload_blob_seal(fd, data, size), 0);
    return fd;
}

/* What a stranger may send: any bytes with any number of copies of one descriptor. */
static void send_raw(const void *data, size_t size, int fd, unsigned count)
{
    struct iovec vector = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(253 * sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    int fds[253];

    for (unsigned i = 0; i < count; i++)
        fds[i] = fd;
    if (count > 0) {
        struct cmsghdr *header = &control.align;

        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    ck_assert_int_eq(sendmsg(sockets[0], &message, 0), (ssize_t)size);
}

TEST(a_copy_is_a_sealed_blob_that_is_read_from_its_beginning)
{
    static char bytes[3 << 20], read_back[sizeof(bytes)];
    int fd;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    ck_assert_int_eq(payload_blob_copy(bytes, sizeof(bytes), &fd), 0);
    ck_assert_int_eq(payload_blob_check(fd, sizeof(bytes)), 0);
    ck_assert_int_eq(read(fd, read_back, sizeof(read_back)), (ssize_t)sizeof(bytes));
    ck_assert_mem_eq(read_back, bytes, sizeof(bytes));
    close_fd(fd);
}

TEST(nobody_can_change_a_sealed_blob)
{
    int fd = new_blob("some bytes", 10);

    ck_assert_int_lt(pwrite(fd, "x", 1, 0), 0);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_lt(ftruncate(fd, 5), 0);
    ck_assert_int_lt(ftruncate(fd, 50), 0);
    ck_assert_ptr_eq(mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    close_fd(fd);
}

TEST(a_blob_that_somebody_can_still_write_is_not_sealed)
{
    void *data, *other;
    int fd;

    ck_assert_int_eq(payload_blob_new(10, &fd, &data), 0);
    other = mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(other, MAP_FAILED);
    ck_assert_int_eq(payload_blob_seal(fd, data, 10), -EBUSY);
    ck_assert_int_eq(payload_blob_check(fd, 10), -EPROTO);
    ck_assert_int_eq(munmap(other, 10), 0);
    close_fd(fd);
}

TEST(the_check_refuses_everything_that_is_not_just_so)
{
    int sealed = new_blob("some bytes", 10), fd, fds[2];
    void *data;

    ck_assert_int_eq(payload_blob_check(sealed, 9), -EPROTO);
    ck_assert_int_eq(payload_blob_check(sealed, 11), -EPROTO);
    ck_assert_int_eq(payload_blob_check(sealed, UINT64_MAX), -EPROTO);
    close_fd(sealed);

    ck_assert_int_eq(payload_blob_new(10, &fd, &data), 0);
    ck_assert_int_eq(payload_blob_check(fd, 10), -EPROTO);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    ck_assert_int_eq(payload_blob_check(fd, 10), -EPROTO);
    ck_assert_int_eq(munmap(data, 10), 0);
    close_fd(fd);

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(payload_blob_check(fds[0], 0), -EPROTO);
    close_fd(fds[0]);
    close_fd(fds[1]);
    ck_assert_int_eq(payload_blob_check(-1, 0), -EPROTO);
}

TEST(a_blob_that_cannot_be_read_is_refused)
{
    int blob = new_blob("some bytes", 10), fd;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", blob);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(payload_blob_check(fd, 10), -EPROTO);
    close_fd(fd);
    close_fd(blob);
}

TEST(a_blob_of_no_bytes_is_refused)
{
    int fd = memory_new_fd("test", 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    ck_assert_int_eq(payload_blob_check(fd, 0), -EPROTO);
    close_fd(fd);
}

TEST(a_blob_with_memory_behind_its_end_is_refused)
{
    int fd = memory_new_fd("test", 1);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 4 << 20), 0);
    ck_assert_int_eq(
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    ck_assert_int_eq(payload_blob_check(fd, 1), -EPROTO);
    close_fd(fd);
}

/* Its recipient could map it only while the kernel has free huge pages. */
TEST(a_blob_of_huge_pages_is_refused)
{
    const off_t size = 1 << 30; /* a multiple of all sizes of pages */
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

    if (fd < 0)
        return; /* the kernel or the machine has none */
    ck_assert_int_eq(ftruncate(fd, size), 0);
    ck_assert_int_eq(
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    ck_assert_int_eq(payload_blob_check(fd, (uint64_t)size), -EPROTO);
    close_fd(fd);
}

TEST(empty_and_endless_blobs_are_refused)
{
    const void *mapped;
    void *data;
    int fd;

    ck_assert_int_eq(payload_blob_new(0, &fd, &data), -EINVAL);
    ck_assert_int_eq(payload_blob_new(PAYLOAD_BLOB_MAX + 1, &fd, &data), -EINVAL);
    ck_assert_int_eq(payload_blob_copy("", 0, &fd), -EINVAL);
    ck_assert_int_eq(payload_blob_map(0, 0, &mapped), -EINVAL);
}

TEST(the_wrong_serial_is_refused_and_its_descriptor_closed)
{
    int blob = new_blob("some bytes", 10), fd = -1;
    unsigned before = open_descriptors();

    ck_assert_int_eq(payload_send_fd(sockets[0], blob, 8), 0);
    ck_assert_int_eq(payload_receive_fd(sockets[1], 7, payload_drop_fd, &fd), -EPROTO);
    ck_assert_int_eq(fd, -1);
    ck_assert_uint_eq(open_descriptors(), before);
    close_fd(blob);
}

TEST(nothing_there_is_refused_without_waiting)
{
    int fd;

    ck_assert_int_eq(payload_receive_fd(sockets[1], 1, payload_drop_fd, &fd), -EPROTO);
    sockets[0] = close_fd(sockets[0]);
    ck_assert_int_eq(payload_receive_fd(sockets[1], 1, payload_drop_fd, &fd), -EPROTO);
}

/* The kernel reports the unread one first. */
TEST(a_descriptor_arrives_although_its_sender_is_gone_and_has_left_one_unread)
{
    _cleanup_close_ int blob = new_blob("x", 1), received = -1;

    ck_assert_int_eq(payload_send_fd(sockets[1], blob, 5), 0);
    ck_assert_int_eq(payload_send_fd(sockets[0], blob, 7), 0);
    sockets[0] = close_fd(sockets[0]);
    ck_assert_int_eq(payload_receive_fd(sockets[1], 7, payload_drop_fd, &received), 0);
    ck_assert_int_eq(payload_blob_check(received, 1), 0);
}

TEST(odd_messages_are_refused_and_leave_no_descriptor_behind)
{
    static const struct {
        size_t size;
        unsigned count;
    } odd[] = {{8, 0}, {8, 2}, {8, 3}, {8, 253}, {0, 1}, {7, 1}, {9, 1}, {4096, 1}, {4096, 253}};
    static uint64_t data[512];
    unsigned before = open_descriptors();

    data[0] = 1;
    for (size_t i = 0; i < ELEMENTS(odd); i++) {
        int fd;

        send_raw(data, odd[i].size, STDIN_FILENO, odd[i].count);
        ck_assert_int_eq(payload_receive_fd(sockets[1], 1, payload_drop_fd, &fd), -EPROTO);
        ck_assert_uint_eq(open_descriptors(), before);
    }
}

/* Valgrind keeps the limit on descriptors to itself: the kernel never says that there are none
 * left. */
TEST(running_out_of_descriptors_is_not_the_senders_fault, .native = true)
{
    struct rlimit old, limit;
    int fd, next = dup(STDIN_FILENO);

    ck_assert_int_eq(payload_send_fd(sockets[0], STDIN_FILENO, 1), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit = old;
    limit.rlim_cur = (rlim_t)next + 1; /* the lowest free numbers are all in use below this */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(payload_receive_fd(sockets[1], 1, payload_drop_fd, &fd), -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    close_fd(next);
}

TEST(a_peer_that_does_not_read_makes_the_sender_busy_not_stuck)
{
    int r;

    do
        r = payload_send_fd(sockets[0], STDIN_FILENO, 1);
    while (r == 0);
    /* Either its buffer is full, or too many descriptors of ours are under way. */
    ck_assert(r == -EAGAIN || r == -ETOOMANYREFS);
}

TEST(a_peer_that_is_gone_is_an_error_and_no_signal)
{
    sockets[1] = close_fd(sockets[1]);
    ck_assert_int_eq(payload_send_fd(sockets[0], STDIN_FILENO, 1), -EPIPE);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
