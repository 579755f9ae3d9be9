/* SPDX-License-Identifier: MIT */

/* The interface org.varlink.service. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"

#include <string.h>

static void get_info(struct request *request)
{
    static const struct varlink_parameter table[] = {{0}};
    struct reply *reply;

    if (!request_take(request, table, NULL))
        return;
    reply = request_begin(request);
    reply_string(reply, "vendor", "The Troupe authors");
    reply_string(reply, "product", "Troupe");
    reply_string(reply, "version", TROUPE_VERSION);
    reply_string(reply, "url", "man:troupe-varlink(7)");
    reply_array(reply, "interfaces");
    for (const struct request_interface *const *i = request->context->interfaces; *i; i++)
        reply_string(reply, NULL, (*i)->name);
    reply_end_array(reply);
    request_end(request);
}

struct description_parameters {
    const char *interface;
};

static void get_description(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"interface", VARLINK_STRING, true, offsetof(struct description_parameters, interface)},
        {0},
    };
    struct description_parameters parameters = {0};

    if (!request_take(request, table, &parameters))
        return;
    for (const struct request_interface *const *i = request->context->interfaces; *i; i++) {
        if (strcmp((*i)->name, parameters.interface) != 0)
            continue;
        reply_string(request_begin(request), "description", (*i)->description);
        request_end(request);
        return;
    }
    request_fail_string(request, "org.varlink.service.InterfaceNotFound", "interface",
                        parameters.interface);
}

const struct request_method service_methods[] = {
    {"GetInfo", get_info, false},
    {"GetInterfaceDescription", get_description, false},
    {0},
};
