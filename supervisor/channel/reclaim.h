/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Gives memory back to the kernel after a flood of payloads and jobs, at a bounded cost in a turn.
 * The C library does so by itself only at the end of its heap.
 *
 * Each time that so many bytes less are in use, malloc_trim(3) gives them back. It looks at all
 * holes in the heap: if that is slow, large blocks give back their own pages when they are freed,
 * and malloc_trim() is called again when little is in use. May be called by any thread.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define RECLAIM_STEP      ((uint64_t)16 << 20)
#define RECLAIM_SCATTERED UINT64_MAX

/* Numbers only: no order is needed. */
struct reclaim {
    _Atomic uint64_t used; /* bytes of payloads and jobs */
    _Atomic uint64_t most; /* that were in use since memory was given back; RECLAIM_SCATTERED = the
                              heap has many holes */
};

extern struct reclaim reclaim;

/* So many bytes have been allocated. Inline, like the next one: called for each job. */
static inline void reclaim_took(size_t size)
{
    const uint64_t used =
        atomic_fetch_add_explicit(&reclaim.used, size, memory_order_relaxed) + size;

    if (used > atomic_load_explicit(&reclaim.most, memory_order_relaxed))
        atomic_store_explicit(&reclaim.most, used, memory_order_relaxed);
}

/* The block is about to be freed, and `used` bytes stay. */
void reclaim_step(void *block, size_t size, uint64_t used);

/* Frees a block of so many bytes. */
static inline void reclaim_free(void *block, size_t size)
{
    const uint64_t used =
        atomic_fetch_sub_explicit(&reclaim.used, size, memory_order_relaxed) - size;

    if (used + RECLAIM_STEP <= atomic_load_explicit(&reclaim.most, memory_order_relaxed))
        reclaim_step(block, size, used);
    free(block);
}
