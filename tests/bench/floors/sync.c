/* SPDX-License-Identifier: MIT */

/* What one sync costs: sync PAUSE DIRECTORY round-trip COUNT BYTES RESULT writes COUNT records of
 * BYTES bytes into a file that has its blocks already, and syncs after each. PAUSE microseconds of
 * sleep precede each record: a disk that has had nothing to do for a moment takes longer. */

#include "tests/bench/load/samples.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_SIZE (1u << 20)

/* Writes all of it once, so that no later sync changes what the file system knows of the file. */
static int open_file(const char *directory, int *ret_fd)
{
    static const char zeros[FILE_SIZE];
    char path[4096];

    snprintf(path, sizeof(path), "%s/records", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || pwrite(fd, zeros, FILE_SIZE, 0) != FILE_SIZE || fsync(fd) < 0)
        return errno > 0 ? -errno : -EIO;
    *ret_fd = fd;
    return 0;
}

static int measure(int fd, useconds_t pause, size_t count, size_t size, struct samples *samples)
{
    char record[4096] = "";
    off_t at = 0;

    for (size_t i = 0; i < count; i++) {
        if (pause > 0)
            (void)usleep(pause);
        uint64_t begin = samples_now();
        if (pwrite(fd, record, size, at) != (ssize_t)size || fdatasync(fd) < 0)
            return -errno;
        samples_add(samples, begin, samples_now());
        at = at + 2 * (off_t)size > FILE_SIZE ? 0 : at + (off_t)size;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const size_t count = argc == 7 ? strtoull(argv[4], NULL, 10) : 0;
    const size_t size = argc == 7 ? strtoull(argv[5], NULL, 10) : 0;
    struct samples samples;
    int fd = -1, r;

    if (count == 0 || size == 0 || size > 4096) {
        fprintf(stderr, "usage: sync PAUSE DIRECTORY round-trip COUNT BYTES RESULT\n");
        return 2;
    }
    r = samples_init(&samples, count);
    if (r == 0)
        r = open_file(argv[2], &fd);
    if (r == 0)
        r = measure(fd, (useconds_t)strtoul(argv[1], NULL, 10), count, size, &samples);
    if (r < 0) {
        fprintf(stderr, "sync: %s\n", strerror(-r));
        return 1;
    }
    printf("{");
    samples_print(&samples, "");
    printf("}\n");
    return 0;
}
