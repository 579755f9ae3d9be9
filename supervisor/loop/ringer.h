/* SPDX-License-Identifier: MIT */
#pragma once

/* Rings eventfds that peers hold as well, and that they may have filled and made blocking at any
 * moment: write(2) would wait, and io_uring's too, as it looks at O_NONBLOCK before it writes. A
 * request of the kernel's AIO can name an eventfd to ring when it is done. That only adds to the
 * count: it waits for nothing and nobody. */

#include <linux/aio_abi.h>
#include <stdbool.h>

struct ringer {
    aio_context_t context; /* 0 = there is none */
    bool refused;          /* there never will be one */
    int file;              /* to be read from: empty */
};

/* Best effort: see ringer_works(). */
void ringer_init(struct ringer *ringer);
void ringer_deinit(struct ringer *ringer);

/* False where the kernel has no AIO, a filter forbids it, or others have used it up. */
bool ringer_works(struct ringer *ringer);

/* Adds one to the eventfd, unless it is full, which wakes as well. The descriptor may be closed
 * right afterwards. Returns 0, -EINVAL if it is no eventfd, -ENOSYS, or another -errno. */
int ringer_ring(struct ringer *ringer, int fd);
