/* SPDX-License-Identifier: MIT */
#include "shared/base/landlock.h"
#include <errno.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The C library's headers may lack these numbers, which are equal on all architectures. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

#define CREATE_VERSION    (1U << 0)
#define RULE_PATH_BENEATH 1

#define OF_FILES (LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE)

/* Kernel interfaces. A kernel accepts a shorter or longer first struct, if all members that it does
 * not know are 0. */
struct rules_attribute {
    uint64_t files, network, scopes;
};

struct path_attribute {
    uint64_t rights;
    int32_t fd;
} __attribute__((packed));

int landlock_abi(void)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t known_rights(int abi, uint64_t rights)
{
    if (abi < 3)
        rights &= ~LANDLOCK_TRUNCATE;
    return abi < 2 ? rights & ~LANDLOCK_REFER : rights;
}

int landlock_new(int abi, uint64_t rights, uint64_t scopes)
{
    const struct rules_attribute attribute = {
        .files = known_rights(abi, rights),
        .scopes = abi < LANDLOCK_ABI_SCOPES ? 0 : scopes,
    };
    const long fd = syscall(SYS_landlock_create_ruleset, &attribute, sizeof(attribute), 0);
    return fd < 0 ? -errno : (int)fd;
}

int landlock_allow(int rules, int abi, uint64_t rights, int fd)
{
    struct path_attribute attribute = {.rights = known_rights(abi, rights), .fd = fd};
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISDIR(status.st_mode))
        attribute.rights &= OF_FILES;
    if (attribute.rights == 0 || S_ISLNK(status.st_mode))
        return 0;
    return syscall(SYS_landlock_add_rule, rules, RULE_PATH_BENEATH, &attribute, 0) < 0 ? -errno : 0;
}

int landlock_confine(int rules)
{
    return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? -errno : 0;
}
