/* SPDX-License-Identifier: MIT */

/* The verb cancel: cancels jobs by id, or all jobs of a group. */

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdint.h>

static int cancel_by_id(struct invocation *invocation, const char *id)
{
    return call_print(invocation, CALL_JOBS "Cancel", json_pack("{s:s}", "id", id), false, NULL);
}

static json_t *filter_parameters(const struct options *options, const char *group)
{
    const usec_t until = usec_sub(clock_realtime(), options->older_than);

    return json_pack(
        "{s:s, s:s*, s:o*, s:o*, s:o*, s:b}", "group", group, "key", options->of_key, "state",
        field_enum_new(options->state), "cause", field_enum_new(options->cause), "until_at",
        options->older_than > 0 ? field_given(until) : NULL, "dry_run", options->dry_run);
}

static void show_count(const struct invocation *invocation, const json_t *reply)
{
    const uint64_t n = field_count(reply, "cancelled");

    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s: %s job%s %scancelled",
                       SAFE(field_text(reply, "group")), COUNT(n), plural(n),
                       invocation->options.dry_run ? "would be " : "");
}

static int cancel_group(struct invocation *invocation, const char *group)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_JOBS "CancelAll", filter_parameters(&invocation->options, group),
                 true, &reply);

    if (r != EXIT_OK)
        return r;
    if (json_object_set_new(reply, "group", json_string(group)) < 0)
        return call_no_memory();
    r = output_reply(invocation, reply, show_count);
    if (r != EXIT_OK || field_count(reply, "failed") == 0)
        return r;
    complain("%s could not be cancelled; the last: %s", COUNT(field_count(reply, "failed")),
             field_text(reply, "problem"));
    return EXIT_FAILED;
}

int verb_cancel(struct invocation *invocation)
{
    const struct options *options = &invocation->options;

    if (!options->everything && (options->dry_run || options->older_than > 0 || options->cause ||
                                 options->state || options->of_key)) {
        complain("filters and --dry-run need --all");
        return EXIT_USAGE;
    }
    return invocation_each(invocation, 0, options->everything ? cancel_group : cancel_by_id);
}
