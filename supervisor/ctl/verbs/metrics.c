/* SPDX-License-Identifier: MIT */

/* The verb metrics: numbers as text for monitoring systems. */

#include "supervisor/metrics/metrics.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_text(const struct invocation *invocation, const char *text, size_t size)
{
    const char *path = invocation->options.output;
    int r;

    if (!path)
        return fwrite(text, 1, size, stdout) == size ? EXIT_OK : EXIT_FAILED;
    r = output_replace_file(path, text, size);
    if (r == 0)
        return EXIT_OK;
    complain("%s: %s", SAFE(path), strerror(-r));
    return EXIT_FAILED;
}

static int print_text(const struct invocation *invocation, const json_t *reply)
{
    size_t size = 0;
    _cleanup_free_ char *text = metrics_to_text(reply, &size);

    return text ? write_text(invocation, text, size) : call_no_memory();
}

int verb_metrics(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    int r;

    if (invocation->options.json && invocation->options.output) {
        complain(
            "--output writes metrics, and --json prints the supervisor's reply: give only one");
        return EXIT_USAGE;
    }
    r = parts_of_metrics(invocation, &reply);
    if (r != EXIT_OK)
        return r;
    return invocation->options.json ? output_json(invocation, reply)
                                    : print_text(invocation, reply);
}
