/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/namespace.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

int namespace_new(struct sandbox_namespace **ret)
{
    _cleanup_free_ struct sandbox_namespace *namespace = malloc(sizeof(*namespace));

    if (!namespace)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, namespace->storage) < 0)
        return -errno;
    *ret = TAKE_PTR(namespace);
    return 0;
}

struct sandbox_namespace *namespace_free(struct sandbox_namespace *namespace)
{
    for (size_t i = 0; namespace && i < ELEMENTS(namespace->storage); i++)
        close_fd(namespace->storage[i]);
    free(namespace);
    return NULL;
}
