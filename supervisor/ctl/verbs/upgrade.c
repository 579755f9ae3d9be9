/* SPDX-License-Identifier: MIT */

/* The verb upgrade. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"

struct upgrade {
    json_t *before; /* GetInfo's reply before the upgrade; owned */
    bool quiet;
};

static int show_outcome(struct invocation *invocation, const struct upgrade *upgrade,
                        const json_t *info)
{
    if (field_count(info, "upgrades") > field_count(upgrade->before, "upgrades")) {
        if (!upgrade->quiet)
            terminal_print(&invocation->out, "trouped %s has taken over from trouped %s",
                           SAFE(field_text(info, "version")),
                           SAFE(field_text(upgrade->before, "version")));
        return EXIT_OK;
    }
    if (field_count(info, "failed_upgrades") > field_count(upgrade->before, "failed_upgrades"))
        complain("the new program did not become ready, and trouped %s goes on; its log says why",
                 SAFE(field_text(info, "version")));
    else
        complain("the supervisor ended before it was replaced, and trouped %s goes on: try again",
                 SAFE(field_text(info, "version")));
    return EXIT_FAILED;
}

/* Requests the upgrade on the first connection, and looks at the outcome on the next one. */
static int once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct upgrade *upgrade = userdata;
    json_auto_t *info = NULL, *reply = NULL;
    int r = call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);

    if (r != EXIT_OK)
        return r;
    reconnect_done(reconnect);
    if (upgrade->before)
        return show_outcome(invocation, upgrade, info);
    upgrade->before = json_incref(info);
    return call(invocation, CALL_SUPERVISOR "Upgrade", json_object(), true, &reply);
}

int verb_upgrade(struct invocation *invocation)
{
    struct upgrade upgrade = {.quiet = invocation->options.quiet};
    int r;

    invocation->options.quiet = true; /* the connection is expected to break */
    r = reconnect_run(invocation, RECONNECT_DEFAULT, once, &upgrade);
    json_decref(upgrade.before);
    return r;
}
