/* SPDX-License-Identifier: MIT */
#pragma once

/* The chosen ids, or the unique keys, of durable jobs that are on disk, and not in memory: no other
 * job may take them. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct names_on_disk {
    struct index by_name; /* by a hash of the name, which stands for it */
    struct list all;
};

void names_on_disk_init(struct names_on_disk *names);
void names_on_disk_deinit(struct names_on_disk *names);

/* The job with this number leaves memory. Idempotent. Without memory, its name is not guarded. */
void names_on_disk_add(struct names_on_disk *names, const void *name, size_t size, int64_t number);
/* The job comes into memory. Idempotent. */
void names_on_disk_remove(struct names_on_disk *names, const void *name, size_t size,
                          int64_t number);

/* Returns the number of a job with this name; 0 = there is none. */
int64_t names_on_disk_find(const struct names_on_disk *names, const void *name, size_t size);
/* Whether there is one with a lower number. */
bool names_on_disk_has_before(const struct names_on_disk *names, const void *name, size_t size,
                              int64_t number);
/* `name` is terminated. */
static inline bool names_on_disk_has(const struct names_on_disk *names, const char *name)
{
    return names_on_disk_find(names, name, strlen(name)) != 0;
}
