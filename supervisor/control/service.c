/* SPDX-License-Identifier: MIT */

/* The interface org.varlink.service. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include <string.h>

static void get_info(struct request *request)
{
    struct reply *reply = request_begin(request);

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

struct parameters {
    const char *interface;
};

static void get_description(struct request *request)
{
    const struct parameters *given = request->parameters;

    for (const struct request_interface *const *i = request->context->interfaces; *i; i++) {
        if (strcmp((*i)->name, given->interface) != 0)
            continue;
        reply_string(request_begin(request), "description", (*i)->description);
        request_end(request);
        return;
    }
    request_fail_string(request, "org.varlink.service.InterfaceNotFound", "interface",
                        given->interface);
}

static const struct varlink_parameter interface_table[] = {
    VARLINK_ROW("interface", STRING, parameters, interface, .required = true),
    {0},
};

const struct request_method control_service_methods[] = {
    {"GetInfo", get_info, .changes = false, .always = true},
    {"GetInterfaceDescription", get_description, interface_table, .changes = false, .always = true},
    {0},
};
