/* SPDX-License-Identifier: MIT */

/* The verbs info and version. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include "worker/troupe.h"

int verb_info(struct invocation *invocation)
{
    const struct terminal *out = &invocation->out;
    usec_t now = clock_realtime(), started;
    json_t *info;
    int r;

    r = call(invocation, CALL_SUPERVISOR "GetInfo", NULL, false, &info);
    if (r != EXIT_OK)
        return r;
    started = field_usec(info, "started_at");
    if (invocation->options.json) {
        r = call_print_json(invocation, info);
    } else {
        terminal_print(out, "Version: %s", SAFE(field_text(info, "version")));
        terminal_print(out, "  State: %s", SAFE(field_text(info, "state")));
        terminal_print(out, "    Pid: %lld", (long long)field_int(info, "pid"));
        terminal_print(out, "  Since: %s (%s)", TIME(started), AGO(now, started));
        terminal_print(out, " Socket: %s", SAFE(invocation_socket(invocation)));
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
    json_decref(info);
    return r;
}

/* The supervisor's version, or NULL without an error message if it is not running. */
static json_t *running_version(const struct invocation *invocation)
{
    struct varlink_client client = VARLINK_CLIENT_NULL;
    struct varlink_reply reply;
    json_t *version = NULL;

    if (varlink_client_init(&client, invocation_socket(invocation), CALL_TIMEOUT) == 0 &&
        varlink_client_send(&client, CALL_SUPERVISOR "GetInfo", NULL, false) == 0 &&
        varlink_client_receive(&client, &reply) == 0) {
        version = json_incref(json_object_get(reply.parameters, "version"));
        varlink_reply_deinit(&reply);
    }
    varlink_client_deinit(&client);
    return version;
}

int verb_version(struct invocation *invocation)
{
    json_t *version = running_version(invocation), *document;
    const char *text = json_string_value(version);
    int r = EXIT_OK;

    if (invocation->options.json) {
        document = json_pack("{s:s, s:s?}", "troupectl", troupe_version(), "trouped", text);
        r = document ? call_print_json(invocation, document) : call_no_memory();
        json_decref(document);
    } else {
        terminal_print(&invocation->out, "troupectl %s", troupe_version());
        terminal_print(&invocation->out, "trouped %s",
                       text ? SAFE(text) : "(none is running here)");
    }
    json_decref(version);
    return r;
}
