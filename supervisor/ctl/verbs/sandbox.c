/* SPDX-License-Identifier: MIT */

/* The verb sandbox: suggests the keys with which the workers of a group can do their work. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <string.h>

/* No line of a suggestion is longer, if its words allow that. */
#define WIDTH 100

static const char KEY[] = "SystemCallFilter=";

static void show_calls(const struct invocation *invocation, const json_t *calls)
{
    char line[2 * WIDTH] = "";
    const json_t *call;
    size_t i;

    terminal_print(&invocation->out, "[Sandbox]");
    json_array_foreach(calls, i, call)
    {
        const char *name = json_string_value(call);

        if (*line && strlen(line) + strlen(name) >= WIDTH) {
            terminal_print(&invocation->out, "%s%s", KEY, SAFE(line));
            *line = '\0';
        }
        (void)snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%.80s",
                       *line ? " " : "", name);
    }
    terminal_print(&invocation->out, "%s%s", KEY, SAFE(line));
}

static void show_suggestion(const struct invocation *invocation, const json_t *suggestion)
{
    show_calls(invocation, json_object_get(suggestion, "system_calls"));
}

static int suggest(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL, *suggestion = NULL;
    const json_t *status, *calls;
    int r = call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", group),
                 false, &reply);

    if (r != EXIT_OK)
        return r;
    status = json_array_get(json_object_get(reply, "groups"), 0);
    calls = json_object_get(status, "system_calls");
    if (json_array_size(calls) == 0) {
        complain(
            "%s: no system calls are recorded; set SystemCallLog=~@default in [Sandbox], reload, "
            "and let it work",
            group);
        return EXIT_FAILED;
    }
    suggestion = json_pack("{s:O}", "system_calls", calls);
    return suggestion ? output_reply(invocation, suggestion, show_suggestion) : call_no_memory();
}

int verb_sandbox(struct invocation *invocation)
{
    if (strcmp(invocation_operand(invocation, 0), "suggest") == 0)
        return suggest(invocation, invocation_operand(invocation, 1));
    complain("usage: troupectl sandbox suggest GROUP");
    return EXIT_USAGE;
}
