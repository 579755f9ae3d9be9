/* SPDX-License-Identifier: MIT */
#include "supervisor/varlink/varlink-memory.h"

#include "shared/base/fault.h"
#include <errno.h>
#include <jansson.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Enough for the largest message without reusing memory: the lexer's buffer doubles until it holds
 * the text (four times its size in total), strings and names are copies of the text, and each value
 * takes a few hundred bytes. */
#define RESERVE_SIZE ((size_t)8 << 20)

static struct {
    uint8_t *start; /* address space only, until it is needed */
    size_t used;
} reserve;

static void *from_reserve(size_t size)
{
    const size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    void *place = reserve.start + reserve.used;

    if (rounded < size || rounded > RESERVE_SIZE - reserve.used)
        abort(); /* the parser must not continue */
    reserve.used += rounded;
    return place;
}

static void *allocate(size_t size)
{
    void *place = fault_inject("json") < 0 ? NULL : malloc(size);

    return place ? place : from_reserve(size);
}

static void release(void *place)
{
    const uintptr_t at = (uintptr_t)place, start = (uintptr_t)reserve.start;

    if (at < start || at >= start + RESERVE_SIZE)
        free(place);
}

int varlink_memory_init(void)
{
    void *start;

    if (reserve.start)
        return 0;
    start = mmap(NULL, RESERVE_SIZE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return -ENOMEM;
    reserve.start = start;
    json_set_alloc_funcs(allocate, release);
    return 0;
}

void varlink_memory_begin(void)
{
    if (reserve.used == 0)
        return;
    (void)madvise(reserve.start, reserve.used, MADV_DONTNEED);
    reserve.used = 0;
}

bool varlink_memory_ran_out(void)
{
    return reserve.used > 0;
}
