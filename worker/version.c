/* SPDX-License-Identifier: MIT */

/* The library's version and names. */

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol.h"
#include "worker/public.h"
#include "worker/troupe.h"

_public_ const char *troupe_version(void)
{
    return TROUPE_VERSION;
}

_public_ const char *troupe_end_name(enum troupe_end end)
{
    static const char *const names[] = {
        [TROUPE_SUCCEEDED] = "succeeded",
        [TROUPE_REJECTED] = "rejected",
        [TROUPE_CANCELLED] = "cancelled",
        [TROUPE_DEAD] = "dead",
    };

    return (unsigned)end < ELEMENTS(names) ? names[end] : "unknown";
}

_public_ const char *troupe_cause_name(enum troupe_cause cause)
{
    return protocol_cause_name((enum protocol_cause)cause);
}
