/* SPDX-License-Identifier: MIT */
#pragma once

/* The last checkpoint of a job: bytes from which its next attempt continues. They never change, so
 * that the storage thread can write them while a newer one comes. References are the loop's. */

#include <stddef.h>
#include <stdint.h>

struct checkpoint {
    unsigned references;
    uint32_t size;
    char bytes[];
};

/* Copies the bytes. The caller has the only reference. NULL = out of memory. */
struct checkpoint *checkpoint_new(const void *data, size_t size);
struct checkpoint *checkpoint_ref(struct checkpoint *checkpoint);
/* NULL allowed. Returns NULL. */
struct checkpoint *checkpoint_unref(struct checkpoint *checkpoint);
