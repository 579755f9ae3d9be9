/* SPDX-License-Identifier: MIT */

/* The verb log: the output of workers, and the switch of the message log. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static const char *const WORDS[] = {"enqueued", "dispatched", "unhandled"};

/* Whether `word` comes first in the comma-separated `*list`; then moves behind it. */
static bool takes_away(const char **list, const char *word)
{
    const size_t size = strlen(word);

    if (strncmp(*list, word, size) != 0 || ((*list)[size] != ',' && (*list)[size] != '\0'))
        return false;
    *list += size + ((*list)[size] == ',');
    return true;
}

static bool parse(const char *list, bool on[ELEMENTS(WORDS)])
{
    if (strcmp(list, "none") == 0)
        return true;
    if (strcmp(list, "all") == 0)
        list = "enqueued,dispatched,unhandled";
    if (*list == '\0')
        return false;
    while (*list != '\0') {
        size_t i = 0;

        while (i < ELEMENTS(WORDS) && !takes_away(&list, WORDS[i]))
            i++;
        if (i == ELEMENTS(WORDS))
            return false;
        on[i] = true;
    }
    return true;
}

/* Changes which messages of the target are logged, as --messages says. */
static int switch_messages(struct invocation *invocation, const char *target)
{
    bool on[ELEMENTS(WORDS)] = {false};

    if (!parse(invocation->options.messages, on)) {
        complain("--messages=%s: unknown; allowed: enqueued, dispatched, unhandled (separated by "
                 "commas), all, none",
                 invocation->options.messages);
        return EXIT_USAGE;
    }
    return call_print(invocation, CALL_ACTORS "SetMessageLog",
                      json_pack("{s:s, s:b, s:b, s:b}", "target", target, WORDS[0], on[0], WORDS[1],
                                on[1], WORDS[2], on[2]),
                      false, NULL);
}

static void show_lines(const struct invocation *invocation, const json_t *reply)
{
    const json_t *lines = json_object_get(reply, "lines");

    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));

        /* Control characters are escaped on a terminal only. */
        if (invocation->out.is_terminal)
            puts(SAFE_LINE(line ? line : ""));
        else
            puts(line ? line : "");
    }
}

static int follow_lines(struct invocation *invocation, const json_t *parameters, bool last,
                        void *userdata)
{
    int r = output_reply(invocation, parameters, show_lines);

    (void)last;
    reconnect_done(userdata);
    return r == EXIT_OK && fflush(stdout) != 0 ? EXIT_FAILED : r;
}

static int follow_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    (void)userdata;
    return call_more(
        invocation, CALL_SUPERVISOR "GetLog",
        json_pack("{s:s, s:b}", "target", invocation_operand(invocation, 0), "follow", true), true,
        follow_lines, reconnect);
}

int verb_log(struct invocation *invocation)
{
    const char *target = invocation_operand(invocation, 0);

    if (invocation->options.messages)
        return switch_messages(invocation, target);
    if (!invocation->options.follow)
        return call_print(invocation, CALL_SUPERVISOR "GetLog",
                          json_pack("{s:s}", "target", target), false, show_lines);
    invocation->lines = true;
    return reconnect_run(invocation, USEC_INFINITY, follow_once, NULL);
}
