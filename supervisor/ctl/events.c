/* SPDX-License-Identifier: MIT */
#include "call.h"
#include "field.h"
#include "invocation.h"
#include "show.h"
#include "verbs.h"

static int show_events(struct invocation *invocation, const json_t *parameters, bool last,
                       void *userdata)
{
    const json_t *events = json_object_get(parameters, "events");

    (void)last;
    (void)userdata;
    if (invocation->options.json)
        return call_print_json_line(parameters);
    for (size_t i = 0; i < json_array_size(events); i++)
        show_event(&invocation->out, json_array_get(events, i));
    return fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

int verb_events(struct invocation *invocation)
{
    const char *target = invocation_operand(invocation, 0);
    json_t *reply, *parameters;
    int r;

    parameters = json_pack("{s:s*, s:b}", "target", target, "replay", invocation->options.replay);
    if (!parameters)
        return call_no_memory();
    if (invocation->options.follow)
        return call_more(invocation, CALL_SUPERVISOR "Watch", parameters, show_events, NULL);
    r = call(invocation, CALL_SUPERVISOR "Watch", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    r = invocation->options.json ? call_print_json(invocation, reply)
                                 : show_events(invocation, reply, true, NULL);
    json_decref(reply);
    return r;
}
