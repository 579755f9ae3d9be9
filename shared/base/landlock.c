/* SPDX-License-Identifier: MIT */
#include "shared/base/landlock.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CREATE_VERSION (1U << 0)

/* The first version of the kernel's interface with scopes. */
#define ABI_SCOPES 6

int landlock_confine(uint64_t scopes)
{
    /* The kernel's struct: rights to files and to the network, scopes. */
    const uint64_t rules[] = {0, 0, scopes};
    _cleanup_close_ int fd = -1;
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION) < ABI_SCOPES)
        return LANDLOCK_E_UNKNOWN;
    fd = (int)syscall(SYS_landlock_create_ruleset, rules, sizeof(rules), 0);
    return fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? -errno : 0;
}
