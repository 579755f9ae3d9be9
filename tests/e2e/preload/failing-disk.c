/* SPDX-License-Identifier: MIT */
/*
 * A library to preload: some writes and syncs fail. $FAILING_DISK is "sync", "write" or "space":
 *
 *     sync   one sync in 30 does nothing, and fails with EIO
 *     write  one write in 60 does the same
 *     space  now and then a few writes in a row fail with ENOSPC
 *
 * And all writes fail with ENOSPC while the file $FULL_DISK exists.
 * Only pwrite() counts as a write: it is what SQLite uses.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPACE_CALLS 3 /* that fail in a row */

/* The calls come from the storage thread alone. */
static unsigned random_state = 1, n_left;

static bool is(const char *kind)
{
    const char *chosen = getenv("FAILING_DISK");

    return chosen && strcmp(chosen, kind) == 0;
}

static bool one_in(unsigned n)
{
    return (unsigned)rand_r(&random_state) % n == 0;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

int fdatasync(int fd)
{
    if (is("sync") && one_in(30))
        return fail(EIO);
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    if (is("sync") && one_in(30))
        return fail(EIO);
    return (int)syscall(SYS_fsync, fd);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    const char *full = getenv("FULL_DISK");

    if (full && access(full, F_OK) == 0)
        return fail(ENOSPC);
    if (is("write") && one_in(60))
        return fail(EIO);
    if (n_left == 0 && is("space") && one_in(60))
        n_left = SPACE_CALLS;
    if (n_left > 0 && n_left--)
        return fail(ENOSPC);
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite64(fd, data, size, offset);
}
