/* SPDX-License-Identifier: MIT */

/* Compiles system-call filters (sandbox/filter.h). A filter is not a name, but compiling one is
 * slow, so the process that looks names up does it. */

#include "supervisor/config/names/names-private.h"

#include "supervisor/config/sandbox/filter.h"
#include <errno.h>

int names_ask_filter(struct name *name)
{
    struct sandbox_filter filter;
    int r = filter_compile(name->wanted, &filter);

    if (r == -ENOMEM)
        return r;
    name->error = -r;
    if (r < 0)
        return 0;
    name->name = filter.code;
    name->size = filter.size;
    return 0;
}
