/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/network.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

int network_new(struct sandbox_network **ret)
{
    _cleanup_free_ struct sandbox_network *network = malloc(sizeof(*network));

    if (!network)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, network->storage) < 0)
        return -errno;
    *ret = TAKE_PTR(network);
    return 0;
}

struct sandbox_network *network_free(struct sandbox_network *network)
{
    for (size_t i = 0; network && i < ELEMENTS(network->storage); i++)
        close_fd(network->storage[i]);
    free(network);
    return NULL;
}
