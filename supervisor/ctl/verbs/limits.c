/* SPDX-License-Identifier: MIT */

/* The verb limit. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/list.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const struct list_column columns[] = {
    {"LIMIT", "{name}", LIST_LEFT},
    {"OF", "[{kind=group}the group|{kind=key}a key|{kind=undescribed}no file|groups]", LIST_LEFT},
    {"RUNNING", "[[{taken:count} of ]{running:count}[{running_per=key} per key]]", LIST_LEFT},
    {"RATE", "[{rate:count} in {period_usec:span}[{rate_per=key} per key]]", LIST_LEFT},
    {"READY", "[{ready:count} of {burst:count}]", LIST_LEFT},
    {"WAITING", "{waiting:count}", LIST_RIGHT},
    {"HELD", "[{held_usec>0:span}]", LIST_RIGHT},
    {"", "[{set}set at run time]", LIST_LEFT},
    {0},
};

static void show(const struct invocation *invocation, const json_t *reply)
{
    const json_t *limits = json_object_get(reply, "limits");

    if (json_array_size(limits) > 0)
        list_print(&invocation->out, "", columns, limits, clock_realtime());
    else
        terminal_print(&invocation->out, "No limits.");
}

/* "infinity" becomes 0. The supervisor checks the range. */
static int put_number(json_t *parameters, const char *name, const char *text)
{
    int64_t number = 0;

    if (strcmp(text, "infinity") != 0 && value_number(text, 1, INT32_MAX, &number) < 0)
        return -EINVAL;
    return json_object_set_new(parameters, name, json_integer(number));
}

/* "N/SPAN" or "infinity". */
static int put_rate(json_t *parameters, const char *text)
{
    const char *slash = strchr(text, '/');
    _cleanup_free_ char *number = strndup(text, slash ? (size_t)(slash - text) : strlen(text));
    usec_t period;

    if (!number)
        return -ENOMEM;
    if (!slash)
        return strcmp(text, "infinity") == 0 ? put_number(parameters, "rate", text) : -EINVAL;
    if (value_span(slash + 1, &period) < 0 || period > INT64_MAX)
        return -EINVAL;
    (void)json_object_set_new(parameters, "period_usec", json_integer((json_int_t)period));
    return put_number(parameters, "rate", number);
}

static int put(json_t *parameters, const char *word)
{
    if (strcmp(word, "reset") == 0)
        return json_object_set_new(parameters, "reset", json_true());
    if (strncmp(word, "rate=", strlen("rate=")) == 0)
        return put_rate(parameters, word + strlen("rate="));
    if (strncmp(word, "burst=", strlen("burst=")) == 0)
        return put_number(parameters, "burst", word + strlen("burst="));
    if (strncmp(word, "running=", strlen("running=")) == 0)
        return put_number(parameters, "running", word + strlen("running="));
    return -EINVAL;
}

static int set(struct invocation *invocation)
{
    json_auto_t *parameters = json_pack("{s:s}", "name", invocation_operand(invocation, 0));

    if (!parameters) {
        complain("out of memory");
        return EXIT_FAILED;
    }
    for (size_t i = 1; i < invocation->n_operands; i++) {
        const char *word = invocation_operand(invocation, i);

        if (put(parameters, word) >= 0)
            continue;
        complain("'%s' is no setting; allowed: rate=N/SPAN (such as 100/1min), burst=N, running=N, "
                 "each infinity but burst; or reset",
                 word);
        return EXIT_USAGE;
    }
    if (invocation->n_operands < 2) {
        complain("nothing to set; allowed: rate=N/SPAN, burst=N, running=N, or reset");
        return EXIT_USAGE;
    }
    return call_print(invocation, CALL_SUPERVISOR "SetLimit", json_incref(parameters), false, NULL);
}

int verb_limit(struct invocation *invocation)
{
    return invocation->n_operands > 0
               ? set(invocation)
               : call_print(invocation, CALL_SUPERVISOR "GetLimits", json_object(), false, show);
}
