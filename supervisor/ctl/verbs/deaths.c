/* SPDX-License-Identifier: MIT */

/* The verbs deaths and log. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/pages.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/message-log.h"
#include "supervisor/ctl/verbs/verbs.h"

/* The default of --limit. */
#define DEATHS_SHOWN 10

int verb_deaths(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    int64_t limit = options->limit > 0 ? options->limit : DEATHS_SHOWN;
    const json_t *deaths;
    json_t *reply;
    int r;

    r = pages_collect(invocation, CALL_SUPERVISOR "ListDeaths",
                      json_pack("{s:s*}", "target", invocation_operand(invocation, 0)), "deaths",
                      limit, NULL, NULL, &reply);
    if (r != EXIT_OK)
        return r;
    deaths = json_object_get(reply, "deaths");
    if (options->json)
        r = call_print_json(invocation, reply);
    else if (json_array_size(deaths) == 0 && !options->quiet)
        terminal_print(&invocation->out, "No deaths.");
    for (size_t i = 0; !options->json && i < json_array_size(deaths); i++) {
        if (i > 0)
            putchar('\n');
        show_death(&invocation->out, json_array_get(deaths, i), clock_realtime());
    }
    json_decref(reply);
    return r;
}

static void print_lines(const struct invocation *invocation, const json_t *lines)
{
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
    (void)last;
    (void)userdata;
    if (invocation->options.json)
        return call_print_json_line(parameters);
    print_lines(invocation, json_object_get(parameters, "lines"));
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

int verb_log(struct invocation *invocation)
{
    const char *target = invocation_operand(invocation, 0);
    json_t *reply;
    int r;

    if (invocation->options.messages)
        return message_log_switch(invocation, target);
    if (invocation->options.follow)
        return call_more(invocation, CALL_SUPERVISOR "GetLog",
                         json_pack("{s:s, s:b}", "target", target, "follow", true), follow_lines,
                         NULL);
    r = call(invocation, CALL_SUPERVISOR "GetLog", json_pack("{s:s}", "target", target), false,
             &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    else
        print_lines(invocation, json_object_get(reply, "lines"));
    json_decref(reply);
    return r;
}
