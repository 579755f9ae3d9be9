/* SPDX-License-Identifier: MIT */

/* The verb info. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"

static void show_info(const struct invocation *invocation, const json_t *info)
{
    const struct terminal *out = &invocation->out;
    usec_t now = clock_realtime(), started = field_usec(info, "started_at");

    terminal_print(out, "Version: %s", SAFE(field_text(info, "version")));
    terminal_print(out, "  State: %s%s", SAFE(field_text(info, "state")),
                   field_true(info, "safe_mode") ? ", in safe mode" : "");
    if (field_has(info, "config_problem"))
        terminal_print(out, "Trouble: %s", SAFE(field_text(info, "config_problem")));
    terminal_print(out, "    Pid: %lld", (long long)field_int(info, "pid"));
    terminal_print(out, "  Since: %s (%s)", TIME(started), AGO(now, started));
    terminal_print(out, "Crashes: %s", COUNT(field_count(info, "restarts")));
    terminal_print(out, "Upgrade: %s done, %s failed", COUNT(field_count(info, "upgrades")),
                   COUNT(field_count(info, "failed_upgrades")));
    terminal_print(out, " Socket: %s", SAFE(invocation_socket(invocation)));
    if (field_has(info, "loop"))
        terminal_print(out, "   Loop: %s", SAFE(field_text(info, "loop")));
    terminal_print(out, "   Wake: %s", SAFE(field_text(info, "wake")));
    terminal_print(out, "Cgroups: %s", SAFE(field_text(info, "cgroups")));
    terminal_print(out, " Groups: %s", COUNT(field_count(info, "groups")));
    terminal_print(out, "Workers: %s", COUNT(field_count(info, "workers")));
    terminal_print(out, "   Jobs: %s", COUNT(field_count(info, "jobs")));
    terminal_print(out, "Clients: %s", COUNT(field_count(info, "clients")));
    terminal_print(out, " Delays: at most %s since the start, %s in the last minute",
                   SPAN(field_usec(info, "longest_turn_usec")),
                   SPAN(field_usec(info, "recent_turn_usec")));
}

int verb_info(struct invocation *invocation)
{
    return call_print(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, show_info);
}
