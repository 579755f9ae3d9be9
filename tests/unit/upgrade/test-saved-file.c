/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/payload.h"
#include "supervisor/upgrade/saved-file.h"
#include "tests/unit/store/scratch.h"
#include "tests/unit/suite.h"
#include <sys/mman.h>

#define LAYOUT 4711u

static struct scratch scratch;
static struct file_writer writer;
static struct saved_file *file;
static char path[256];
static uint64_t n_read;

static void setup(void)
{
    scratch_init(&scratch);
    (void)snprintf(path, sizeof(path), "%s/saved", scratch.parent);
    ck_assert_int_eq(file_writer_open(&writer, path, LAYOUT), 0);
}

static void teardown(void)
{
    file_writer_close(&writer);
    file = saved_file_close(file);
    scratch_deinit(&scratch);
}

/* A row with a number and a payload of so many bytes, on the heap or in a blob. */
static void add(const char *kind, uint64_t number, size_t size, bool blob)
{
    struct payload payload = PAYLOAD_NULL;
    struct saved_writer row = {0};
    uint8_t *bytes = malloc(size + 1);

    ck_assert_ptr_nonnull(bytes);
    memset(bytes, (int)number, size);
    if (blob) {
        int fd = memfd_create("blob", MFD_CLOEXEC);

        ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
        payload_set_blob(&payload, fd, size);
    } else {
        ck_assert_int_eq(payload_set(&payload, bytes, size), 0);
    }
    saved_put_number(&row, number);
    saved_put_number(&row, size);
    saved_add(&writer.saver, kind, &row, &payload);
    payload_deinit(&payload);
    free(bytes);
}

static int read_row(void *userdata, struct saved_reader *row)
{
    const uint64_t number = saved_get_number(row);
    const uint8_t *bytes = row->payload;

    ck_assert_uint_eq(number, ++n_read);
    ck_assert_uint_eq(row->payload_size, saved_get_number(row));
    for (size_t i = 0; i < row->payload_size; i++)
        ck_assert_uint_eq(bytes[i], (uint8_t)number);
    return number == 3 ? -EBADMSG : 0;
}

static void reopen(int expected)
{
    ck_assert_int_eq(file_writer_flush(&writer), 0);
    ck_assert_int_eq(saved_file_open(&file, path, LAYOUT), expected);
}

TEST(rows_of_a_kind_are_read_in_their_order_and_those_refused_are_counted)
{
    add("one", 1, 4, false);
    add("other", 7, 4, false);
    add("one", 2, 0, false);
    add("one", 3, 4, false);
    add("one", 4, 4, false);
    reopen(0);
    ck_assert_uint_eq(saved_file_scan(file, "one", read_row, NULL), 1);
    ck_assert_uint_eq(n_read, 4);
    ck_assert_uint_eq(saved_file_scan(file, "none", read_row, NULL), 0);
}

TEST(payloads_of_any_size_come_back_from_the_heap_and_from_blobs)
{
    static const size_t SIZES[] = {0, 1, 1 << 16, (1 << 20) + 1};

    for (uint64_t i = 0; i < 2 * ELEMENTS(SIZES); i++)
        add("one", i + 1, SIZES[i / 2], i % 2 == 1 && SIZES[i / 2] > 0);
    reopen(0);
    ck_assert_uint_eq(saved_file_scan(file, "one", read_row, NULL), 1);
    ck_assert_uint_eq(n_read, 2 * ELEMENTS(SIZES));
}

TEST(a_file_of_another_layout_or_that_is_cut_off_is_refused)
{
    struct stat status;

    add("one", 1, 100, false);
    reopen(0);
    file = saved_file_close(file);
    ck_assert_int_eq(saved_file_open(&file, path, LAYOUT + 1), -EUCLEAN);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(truncate(path, status.st_size - 1), 0);
    reopen(-EUCLEAN);
    ck_assert_int_eq(truncate(path, 0), 0);
    reopen(-EUCLEAN);
    ck_assert_int_eq(unlink(path), 0);
    reopen(-ENOENT);
}

TEST(what_is_no_file_of_this_user_is_not_read)
{
    char link[300];

    (void)snprintf(link, sizeof(link), "%s-link", path);
    ck_assert_int_eq(symlink(path, link), 0);
    ck_assert_int_eq(saved_file_open(&file, link, LAYOUT), -EPERM);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        reopen(-EPERM);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reopen(-EPERM);
}

const struct suite suite = {.setup = setup, .teardown = teardown};
