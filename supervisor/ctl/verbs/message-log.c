/* SPDX-License-Identifier: MIT */

/* log TARGET --messages WHAT: which messages of a group the supervisor logs. */

#include "supervisor/ctl/verbs/message-log.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
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

int message_log_switch(struct invocation *invocation, const char *target)
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
