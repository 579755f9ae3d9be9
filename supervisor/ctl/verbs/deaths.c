/* SPDX-License-Identifier: MIT */

/* The verbs deaths and log. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/message-log.h"
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

static void show_lines(const struct invocation *invocation, const json_t *reply)
{
    const json_t *lines = json_object_get(reply, "lines");

    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));

        /* Control characters are escaped on a terminal only. */
        if (invocation->out.is_terminal)
            puts(SAFE_LINE(line ? line : ""));
        else
            puts(line ? line : "");
    }
}

static int follow_lines(struct invocation *invocation, const json_t *parameters, bool last,
                        void *userdata)
{
    int r = output_reply(invocation, parameters, show_lines);

    (void)last;
    (void)userdata;
    return r == EXIT_OK && fflush(stdout) != 0 ? EXIT_FAILED : r;
}

int verb_log(struct invocation *invocation)
{
    const char *target = invocation_operand(invocation, 0);

    if (invocation->options.messages)
        return message_log_switch(invocation, target);
    if (!invocation->options.follow)
        return call_print(invocation, CALL_SUPERVISOR "GetLog",
                          json_pack("{s:s}", "target", target), false, show_lines);
    invocation->lines = true;
    return call_more(invocation, CALL_SUPERVISOR "GetLog",
                     json_pack("{s:s, s:b}", "target", target, "follow", true), true, follow_lines,
                     NULL);
}
