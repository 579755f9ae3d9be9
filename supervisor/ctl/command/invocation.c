/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/command/invocation.h"

#include <stdlib.h>

#define DEFAULT_SOCKET "/run/troupe/troupe.sock"

const char *invocation_socket(const struct invocation *invocation)
{
    const char *path = getenv("TROUPE_SOCKET");

    if (invocation->options.socket)
        return invocation->options.socket;
    return path && *path ? path : DEFAULT_SOCKET;
}

const char *invocation_operand(const struct invocation *invocation, size_t i)
{
    return i < invocation->n_operands ? invocation->operands[i] : NULL;
}
