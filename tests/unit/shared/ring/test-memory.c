/* SPDX-License-Identifier: MIT */
#include "shared/ring/memory.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define RING 8192u

static const struct memory_options inbox_options = {
    .role = MEMORY_INBOX, .ring_size = RING, .inline_max = 1024, .wake_backend = WAKE_FUTEX};
static const struct memory_options outbox_options = {
    .role = MEMORY_OUTBOX, .ring_size = RING, .inline_max = 1024, .wake_backend = WAKE_FUTEX};

static struct memory made = MEMORY_NULL, opened = MEMORY_NULL;

static void make(const struct memory_options *options)
{
    ck_assert_int_eq(memory_create(&made, options), 0);
}

static void make_and_open(const struct memory_options *options)
{
    make(options);
    ck_assert_int_eq(memory_open(&opened, dup(made.fd), options->role), 0);
}

static void teardown(void)
{
    memory_deinit(&made);
    memory_deinit(&opened);
}

/* A memfd that looks like `made` in everything but what the caller spoils. */
static int copy_of_made(int seals, size_t size)
{
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, made.header, MEMORY_HEADER_SIZE, 0), MEMORY_HEADER_SIZE);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* A program of a user that makes one would end by SIGXFSZ, whose handling is its own. */
TEST(a_file_above_the_limit_is_an_error_and_no_signal)
{
    const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    _cleanup_close_ int fd = -1;

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(memory_new_fd("x", 4097), -EFBIG);
    fd = memory_new_fd("x", 4096);
    ck_assert_int_ge(fd, 0);
}

TEST(both_are_sealed_as_they_must_be)
{
    int resize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    make(&inbox_options);
    ck_assert_int_eq(fcntl(made.fd, F_GET_SEALS) & (resize | F_SEAL_FUTURE_WRITE),
                     resize | F_SEAL_FUTURE_WRITE);
    ck_assert_int_eq(fcntl(made.fd, F_GETFD), FD_CLOEXEC);
    memory_deinit(&made);
    make(&outbox_options);
    ck_assert_int_eq(fcntl(made.fd, F_GET_SEALS) & (resize | F_SEAL_FUTURE_WRITE), resize);
    ck_assert_int_eq(fcntl(made.fd, F_GETFD), FD_CLOEXEC);
}

TEST(the_kernel_refuses_a_worker_every_way_to_write_its_inbox)
{
    make_and_open(&inbox_options);
    void *map = mmap(NULL, made.size, PROT_READ | PROT_WRITE, MAP_SHARED, opened.fd, 0);
    ck_assert_ptr_eq(map, MAP_FAILED);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_lt(mprotect(opened.header, opened.size, PROT_READ | PROT_WRITE), 0);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_lt(pwrite(opened.fd, "x", 1, 64), 0);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_lt(ftruncate(opened.fd, 0), 0);
    ck_assert_int_eq(errno, EPERM);
}

TEST(nobody_can_shrink_an_outbox_under_the_reader)
{
    make_and_open(&outbox_options);
    ck_assert_int_lt(ftruncate(opened.fd, 0), 0);
    ck_assert_int_lt(ftruncate(opened.fd, 1 << 20), 0);
}

static void set_job(unsigned i, uint32_t cursor)
{
    made.header->hands |= UINT64_C(1) << i;
    made.header->jobs[i].cursor = cursor;
}

static uint32_t found[MEMORY_JOBS_MAX];
static unsigned n_found;

static void find(void *userdata, const struct memory_job *job)
{
    found[n_found++] = job->cursor;
}

TEST(the_jobs_of_an_inbox_are_found_if_their_records_were_published)
{
    make(&inbox_options);
    set_job(3, 60);
    set_job(5, UINT32_MAX - 9); /* cursors wrap around */
    set_job(63, 140);           /* not published */
    made.header->tail = 100;
    n_found = 0;
    ck_assert_int_eq(memory_scan_jobs(made.fd, find, NULL), 0);
    ck_assert_uint_eq(n_found, 2);
    ck_assert_uint_eq(found[0], 60);
    ck_assert_uint_eq(found[1], UINT32_MAX - 9);
    memory_deinit(&made);
    make(&outbox_options);
    ck_assert_int_eq(memory_scan_jobs(made.fd, find, NULL), -EPROTO);
}

TEST(impossible_options_are_refused)
{
    static const struct memory_options bad[] = {
        {.role = 0, .ring_size = RING, .wake_backend = WAKE_FUTEX},
        {.role = 3, .ring_size = RING, .wake_backend = WAKE_FUTEX},
        {.role = MEMORY_INBOX, .ring_size = 2048, .wake_backend = WAKE_FUTEX},
        {.role = MEMORY_INBOX, .ring_size = RING + 8, .wake_backend = WAKE_FUTEX},
        {.role = MEMORY_INBOX, .ring_size = UINT32_C(1) << 31, .wake_backend = WAKE_FUTEX},
        {.role = MEMORY_INBOX, .ring_size = RING, .inline_max = RING / 4 + 1, .wake_backend = 1},
        {.role = MEMORY_INBOX, .ring_size = RING, .wake_backend = 0},
        {.role = MEMORY_INBOX, .ring_size = RING, .wake_backend = 3},
    };

    for (size_t i = 0; i < ELEMENTS(bad); i++)
        ck_assert_int_eq(memory_create(&made, &bad[i]), -EINVAL);
}

TEST(the_wrong_role_is_refused_and_the_descriptor_stays_the_callers)
{
    make(&inbox_options);
    ck_assert_int_eq(memory_open(&opened, made.fd, MEMORY_OUTBOX), -EPROTO);
    ck_assert_int_ge(fcntl(made.fd, F_GETFD), 0);
    memory_deinit(&made);
    make(&outbox_options);
    ck_assert_int_eq(memory_open(&opened, made.fd, MEMORY_INBOX), -EPROTO);
    ck_assert_int_ge(fcntl(made.fd, F_GETFD), 0);
}

TEST(what_is_not_a_memfd_is_refused)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(memory_open(&opened, fds[0], MEMORY_INBOX), -EPROTO);
    close_fd(fds[0]);
    close_fd(fds[1]);
    ck_assert_int_eq(memory_open(&opened, -1, MEMORY_INBOX), -EBADF);
}

TEST(missing_seals_are_refused)
{
    static const int seals[] = {
        0,
        F_SEAL_SHRINK | F_SEAL_GROW,
        F_SEAL_SHRINK | F_SEAL_SEAL,
        F_SEAL_GROW | F_SEAL_SEAL,
    };

    make(&outbox_options);
    for (size_t i = 0; i < ELEMENTS(seals); i++) {
        _cleanup_close_ int fd = copy_of_made(seals[i], made.size);

        ck_assert_int_eq(memory_open(&opened, fd, MEMORY_OUTBOX), -EPROTO);
    }
}

TEST(a_header_that_does_not_fit_is_refused)
{
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    make(&outbox_options);
    int fd = copy_of_made(seals, made.size);
    ck_assert_int_eq(memory_open(&opened, fd, MEMORY_OUTBOX), 0);
    memory_deinit(&opened);

#define REFUSED(field, value)                                                                      \
    do {                                                                                           \
        __typeof__(made.header->field) saved = made.header->field;                                 \
        made.header->field = (value);                                                              \
        fd = copy_of_made(seals, made.size);                                                       \
        ck_assert_int_eq(memory_open(&opened, fd, MEMORY_OUTBOX), -EPROTO);                        \
        close_fd(fd);                                                                              \
        made.header->field = saved;                                                                \
    } while (0)

    REFUSED(magic, MEMORY_MAGIC + 1);
    REFUSED(version, MEMORY_VERSION + 1);
    REFUSED(role, MEMORY_INBOX);
    REFUSED(ring_size, RING * 2);
    REFUSED(ring_size, RING / 2);
    REFUSED(ring_offset, MEMORY_HEADER_SIZE);
    REFUSED(inline_max, RING);
    REFUSED(wake_backend, 0);
#undef REFUSED
}

TEST(a_file_too_short_or_too_long_is_refused)
{
    static const size_t sizes[] = {0, 4096, 8192, 8192 + 2048, (size_t)1 << 31};
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

    make(&outbox_options);
    for (size_t i = 0; i < ELEMENTS(sizes); i++) {
        _cleanup_close_ int fd = copy_of_made(seals, sizes[i]);

        ck_assert_int_eq(memory_open(&opened, fd, MEMORY_OUTBOX), -EPROTO);
    }
}

TEST(a_state_that_was_never_written_is_empty)
{
    uint8_t data[MEMORY_STATE_MAX];
    size_t size = 1;

    make_and_open(&outbox_options);
    ck_assert_int_eq(memory_state_read(&made, data, &size), 0);
    ck_assert_uint_eq(size, 0);
}

TEST(a_state_is_read_as_it_was_written)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 100, MEMORY_STATE_MAX - 1, MEMORY_STATE_MAX};
    uint8_t written[MEMORY_STATE_MAX + 1], read[MEMORY_STATE_MAX];

    make_and_open(&outbox_options);
    for (size_t i = 0; i < ELEMENTS(sizes); i++) {
        size_t size = 1;

        for (size_t k = 0; k < sizeof(written); k++)
            written[k] = (uint8_t)(k * 7 + i);
        ck_assert_int_eq(memory_state_write(&opened, written + 1, sizes[i]), 0);
        ck_assert_int_eq(memory_state_read(&made, read, &size), (int)sizes[i]);
        ck_assert_uint_eq(size, sizes[i]);
        ck_assert_mem_eq(read, written + 1, sizes[i]);
    }
}

TEST(a_state_above_the_limit_is_refused_and_the_old_one_stays)
{
    uint8_t data[MEMORY_STATE_MAX + 1] = "old";
    size_t size;

    make_and_open(&outbox_options);
    ck_assert_int_eq(memory_state_write(&opened, data, 3), 0);
    ck_assert_int_eq(memory_state_write(&opened, data, sizeof(data)), -EMSGSIZE);
    ck_assert_int_eq(memory_state_read(&made, data, &size), 3);
    ck_assert_mem_eq(data, "old", 3);
}

TEST(the_last_words_of_a_writer_that_died_while_writing_can_be_read)
{
    uint8_t data[MEMORY_STATE_MAX];
    size_t size = 0;

    make_and_open(&outbox_options);
    ck_assert_int_eq(memory_state_write(&opened, "halfway", 7), 0);
    opened.header->state_sequence += 1;
    ck_assert_int_eq(memory_state_read(&made, data, &size), -EAGAIN);
    ck_assert_uint_eq(size, 7);
    ck_assert_mem_eq(data, "halfway", 7);

    /* The successor's first write makes it whole again. */
    ck_assert_int_eq(memory_state_write(&opened, "new", 3), 0);
    ck_assert_int_eq(memory_state_read(&made, data, &size), 3);
    ck_assert_mem_eq(data, "new", 3);
}

TEST(a_sequence_that_wraps_does_not_look_unwritten)
{
    uint8_t data[MEMORY_STATE_MAX];
    size_t size;

    make_and_open(&outbox_options);
    opened.header->state_sequence = UINT32_MAX - 1;
    ck_assert_int_eq(memory_state_write(&opened, "wrap", 4), 0);
    ck_assert_uint_eq(opened.header->state_sequence & 1, 0);
    ck_assert_int_eq(memory_state_read(&made, data, &size), 4);
}

TEST(a_wild_state_size_is_bounded)
{
    uint8_t data[MEMORY_STATE_MAX];
    size_t size;

    make_and_open(&outbox_options);
    opened.header->state_sequence = 2;
    opened.header->state_size = UINT32_MAX;
    ck_assert_int_eq(memory_state_read(&made, data, &size), MEMORY_STATE_MAX);
    ck_assert_uint_eq(size, MEMORY_STATE_MAX);
}

const struct suite suite = {.teardown = teardown};
