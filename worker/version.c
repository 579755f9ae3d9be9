/* SPDX-License-Identifier: MIT */

/* The library's version and names. */

#include "worker/public.h"
#include "worker/troupe.h"

_public_ const char *troupe_version(void)
{
    return "1.0.0";
}

_public_ const char *troupe_end_name(enum troupe_end end)
{
    switch (end) {
    case TROUPE_SUCCEEDED:
        return "succeeded";
    case TROUPE_REJECTED:
        return "rejected";
    case TROUPE_CANCELLED:
        return "cancelled";
    case TROUPE_DEAD:
        return "dead";
    }
    return "unknown";
}
