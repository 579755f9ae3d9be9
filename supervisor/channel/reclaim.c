/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/reclaim.h"

#include "shared/base/clock.h"
#include <malloc.h>
#include <stdbool.h>
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

static void trim(uint64_t used)
{
    const usec_t begin = cpu_time();
    bool slow;

    (void)malloc_trim(0);
    slow = used >= RECLAIM_STEP && cpu_time() - begin > SLOW;
    atomic_store_explicit(&reclaim.most, slow ? RECLAIM_SCATTERED : used, memory_order_relaxed);
}

/* One page is not worth the call. */
static void give_pages_back(void *block, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t start = ((uintptr_t)block + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)block + size) & ~(page - 1);

    if (end >= start + 2 * page)
        (void)madvise((void *)start, end - start, MADV_DONTNEED);
}

void reclaim_step(void *block, size_t size, uint64_t used)
{
    const uint64_t most = atomic_load_explicit(&reclaim.most, memory_order_relaxed);

    if (used < RECLAIM_STEP || most != RECLAIM_SCATTERED)
        trim(used);
    else
        give_pages_back(block, size);
}
