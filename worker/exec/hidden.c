/* SPDX-License-Identifier: MIT */
#include "worker/exec/hidden.h"

#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

bool hidden_has_private_root(void)
{
    struct statfs root;

    /* PrivateRoot= mounts a read-only root in memory. */
    return statfs("/", &root) == 0 && root.f_type == TMPFS_MAGIC && (root.f_flags & ST_RDONLY);
}

bool hidden_is_path(const void *text, size_t size)
{
    char path[PATH_MAX];

    if (size < 2 || size >= sizeof(path) || *(const char *)text != '/')
        return false;
    memcpy(path, text, size);
    path[size] = '\0';
    return access(path, F_OK) < 0 && hidden_has_private_root();
}
