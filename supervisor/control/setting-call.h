/* SPDX-License-Identifier: MIT */
#pragma once

/* Changes a setting (settings.h) for a client: it takes effect once it is on disk, also if the
 * client has left by then. */

#include "supervisor/control/control-context.h"
#include "supervisor/store/settings.h"
#include "supervisor/varlink/request.h"

struct setting_call {
    struct settings *settings;
    const char *name;
    struct limit_row row;
    bool removes;
    /* Called when the setting is on disk and in `settings`. */
    void (*take_effect)(const struct setting_call *call);
    void (*end)(struct request *request); /* answers the request; called after that */
    /* Set by control_set(): */
    struct control_context *context;
    struct request *request; /* NULL = the client has left */
};

/* Copies the call. Replies with NotKept if the store cannot keep it. */
void control_set(struct request *request, const struct setting_call *call);
