/* SPDX-License-Identifier: MIT */

/* The verb limit. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/list.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"

static const struct list_column columns[] = {
    {"LIMIT", "{name}", LIST_LEFT},
    {"OF", "[{kind=group}the group|groups]", LIST_LEFT},
    {"RUNNING", "[[{taken:count} of ]{running:count}[{running_per=key} per key]]", LIST_LEFT},
    {"RATE", "[{rate:count} in {period_usec:span}[{rate_per=key} per key]]", LIST_LEFT},
    {"READY", "[{ready:count} of {burst:count}]", LIST_LEFT},
    {"WAITING", "{waiting:count}", LIST_RIGHT},
    {"HELD", "[{held_usec>0:span}]", LIST_RIGHT},
    {0},
};

static void show(const struct invocation *invocation, const json_t *reply)
{
    const json_t *limits = json_object_get(reply, "limits");

    if (json_array_size(limits) > 0)
        list_print(&invocation->out, "", columns, limits, clock_realtime());
    else
        terminal_print(&invocation->out, "No limits.");
}

int verb_limit(struct invocation *invocation)
{
    return call_print(invocation, CALL_SUPERVISOR "GetLimits", json_object(), false, show);
}
