/* SPDX-License-Identifier: MIT */
/*
 * A library to preload: makes one allocation fail. The file $FAILING_MALLOC holds two numbers of 64
 * bits: the allocations so far, and the one that fails (0 = none). A test that maps the file can
 * choose another one at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static struct plan {
    _Atomic uint64_t count, failing;
} * plan;

__attribute__((constructor)) static void open_plan(void)
{
    const char *path = getenv("FAILING_MALLOC");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (map != MAP_FAILED)
        plan = map;
}

static int fails(void)
{
    if (!plan || atomic_load(&plan->failing) == 0 ||
        atomic_fetch_add(&plan->count, 1) + 1 != atomic_load(&plan->failing))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
