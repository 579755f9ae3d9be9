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

int invocation_each(struct invocation *invocation, size_t first,
                    int (*each)(struct invocation *invocation, const char *operand))
{
    int status = EXIT_OK, r = EXIT_OK;

    invocation->lines = true;
    for (size_t i = first; i < invocation->n_operands && r != EXIT_UNREACHABLE; i++) {
        r = each(invocation, invocation->operands[i]);
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}
