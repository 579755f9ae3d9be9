/* SPDX-License-Identifier: MIT */

/* The verb deaths. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"

/* The default of --limit. */
#define DEATHS_SHOWN 10

int verb_deaths(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_SUPERVISOR "ListDeaths",
                                           .array = "deaths",
                                           .none = "No deaths.",
                                           .show = show_death};
    const int64_t limit = invocation->options.limit;

    return listing_run(invocation, &listing,
                       json_pack("{s:s*}", "target", invocation_operand(invocation, 0)),
                       limit > 0 ? limit : DEATHS_SHOWN);
}
