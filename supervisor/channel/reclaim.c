/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/reclaim.h"

#include "shared/base/clock.h"
#include <malloc.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A step takes about 2 ms in a heap with few holes. */
#define SLOW (4 * USEC_PER_MSEC)

struct reclaim reclaim;

/* The time of the processor: the machine may be busy. */
static usec_t cpu_time(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / NSEC_PER_USEC;
}

void reclaim_step(uint64_t used)
{
    const bool little = used < RECLAIM_STEP;
    usec_t begin;

    if (!little && atomic_load_explicit(&reclaim.scattered, memory_order_relaxed))
        return;
    atomic_store_explicit(&reclaim.most, used, memory_order_relaxed);
    begin = cpu_time();
    (void)malloc_trim(0);
    atomic_store_explicit(&reclaim.scattered, !little && cpu_time() - begin > SLOW,
                          memory_order_relaxed);
}

/* One page is not worth the call. */
void reclaim_pages(void *block, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t start = ((uintptr_t)block + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)block + size) & ~(page - 1);

    if (end >= start + 2 * page)
        (void)madvise((void *)start, end - start, MADV_DONTNEED);
}
