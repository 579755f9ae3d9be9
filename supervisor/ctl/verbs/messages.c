/* SPDX-License-Identifier: MIT */

/* The verbs tell, ask and timer. */

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

/* Added to the time-out of an ask to wait for the supervisor's answer. */
#define ASK_GRACE (5 * USEC_PER_SEC)

/* Whether a payload fits into a request. Prints an error and returns an exit status. */
static int check_size(size_t size)
{
    if (size <= VARLINK_CLIENT_PAYLOAD_MAX)
        return EXIT_OK;
    complain("the payload has %s; messages may have %s at most", BYTES(size),
             BYTES(VARLINK_CLIENT_PAYLOAD_MAX));
    return EXIT_USAGE;
}

/* Builds the parameters from the operands ACTOR TYPE [-] and the options for payload and key. */
static int message_parameters(struct invocation *invocation, json_t **ret)
{
    _cleanup_free_ char *data = NULL;
    json_t *payload;
    size_t size;
    int r = invocation_payload(invocation, invocation_operand(invocation, 2), &data, &size);

    if (r != EXIT_OK)
        return r;
    r = check_size(size);
    if (r != EXIT_OK)
        return r;
    payload = field_payload_new(data, size);
    *ret = payload ? json_pack("{s:s, s:s, s:s*, s:o}", "to", invocation_operand(invocation, 0),
                               "type", invocation_operand(invocation, 1), "key",
                               (const char *)invocation->options.job.key, "payload", payload)
                   : NULL;
    return *ret ? EXIT_OK : call_no_memory();
}

int verb_tell(struct invocation *invocation)
{
    json_t *parameters;
    int r = message_parameters(invocation, &parameters);

    if (r != EXIT_OK)
        return r;
    return call_print(invocation, CALL_ACTORS "Tell", parameters, false, NULL);
}

static int write_reply(const struct terminal *out, const json_t *reply)
{
    _cleanup_free_ char *data = NULL;
    size_t size;

    if (field_payload(reply, "payload", &data, &size) < 0) {
        complain("the payload of the reply is malformed");
        return EXIT_FAILED;
    }
    if (size > 0)
        (void)terminal_write(out, data, size);
    return EXIT_OK;
}

int verb_ask(struct invocation *invocation)
{
    struct options *options = &invocation->options;
    const usec_t timeout = options->ask_timeout > 0 ? options->ask_timeout : PROTOCOL_ASK_TIMEOUT;
    json_auto_t *reply = NULL;
    json_t *parameters;
    int r = message_parameters(invocation, &parameters);

    if (r != EXIT_OK)
        return r;
    json_object_set_new(parameters, "timeout_usec", field_given(timeout));
    if (options->reply_type)
        json_object_set_new(parameters, "reply_type", json_string(options->reply_type));
    options->timeout = usec_add(timeout, ASK_GRACE);
    r = call(invocation, CALL_ACTORS "Ask", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    return options->json ? output_json(invocation, reply) : write_reply(&invocation->out, reply);
}

static int add_times(const struct options *options, json_t *parameters)
{
    const usec_t at = options->job.at_usec, delay = options->job.delay_usec;
    json_auto_t *times = NULL;

    if (at > 0 && delay > 0) {
        complain("--at and --delay cannot be combined");
        return EXIT_USAGE;
    }
    if (at == 0 && delay == 0 && options->every == 0) {
        complain("--delay SPAN, --at TIME or --every SPAN is missing");
        return EXIT_USAGE;
    }
    times = json_pack("{s:o*, s:o*, s:o*}", "at", field_given(at), "delay_usec",
                      at > 0 ? NULL : field_given(delay > 0 ? delay : options->every),
                      "period_usec", field_given(options->every));
    return json_object_update(parameters, times) < 0 ? call_no_memory() : EXIT_OK;
}

static void show_id(const struct invocation *invocation, const json_t *reply)
{
    terminal_print(&invocation->out, "%" PRId64, field_int(reply, "id"));
}

static int add_timer(struct invocation *invocation)
{
    json_t *parameters;
    int r = invocation->n_operands < 2 ? EXIT_USAGE : message_parameters(invocation, &parameters);

    if (invocation->n_operands < 2)
        complain("usage: troupectl timer add ACTOR TYPE [-]");
    if (r != EXIT_OK)
        return r;
    r = add_times(&invocation->options, parameters);
    if (r != EXIT_OK) {
        json_decref(parameters);
        return r;
    }
    return call_print(invocation, CALL_ACTORS "Schedule", parameters, false, show_id);
}

static void show_cancelled(const struct invocation *invocation, const json_t *reply)
{
    if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s cancelled", COUNT(field_count(reply, "cancelled")));
}

/* Reads the id of a timer. The caller owns `*ret`, or NULL when out of memory. */
static int take_id(const struct invocation *invocation, const char *operand, json_t **ret)
{
    int64_t id;

    if (value_number(operand, 1, INT64_MAX, &id) < 0) {
        complain("'%s' is not an id, which is a number; 'troupectl help %s' tells more", operand,
                 invocation->verb->name);
        return EXIT_USAGE;
    }
    *ret = json_pack("{s:I}", "id", (json_int_t)id);
    return EXIT_OK;
}

static int cancel_timer(struct invocation *invocation, const char *operand)
{
    json_t *parameters;
    int r = take_id(invocation, operand, &parameters);

    if (r != EXIT_OK)
        return r;
    return call_print(invocation, CALL_ACTORS "Unschedule", parameters, false, NULL);
}

static int cancel_timers(struct invocation *invocation)
{
    const char *to = invocation->options.to, *type = invocation->options.type;
    const bool ids = invocation->n_operands > 0;

    if (ids && !to && !type)
        return invocation_each(invocation, 0, cancel_timer);
    if (!ids && to && type)
        return call_print(invocation, CALL_ACTORS "Unschedule",
                          json_pack("{s:s, s:s}", "to", to, "type", type), false, show_cancelled);
    complain("give either ids, or both --to ACTOR and --type TYPE");
    return EXIT_USAGE;
}

static const struct list_column timer_columns[] = {
    {"ID", "{id}", LIST_LEFT},
    {"TO", "{to}", LIST_LEFT},
    {"TYPE", "{type}", LIST_LEFT},
    {"IN", "{next_at:in}", LIST_RIGHT},
    {"EVERY", "[{period_usec:span}]", LIST_RIGHT},
    {"OWNER", "{owner}", LIST_LEFT},
    {0},
};

static int list_timers(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_ACTORS "ListTimers",
                                           .array = "timers",
                                           .none = "No timers.",
                                           .columns = timer_columns};

    return listing_run(invocation, &listing,
                       json_pack("{s:s*}", "to", invocation_operand(invocation, 0)),
                       invocation->options.limit);
}

int verb_timer(struct invocation *invocation)
{
    static const struct {
        const char *name;
        int (*run)(struct invocation *invocation);
    } actions[] = {{"list", list_timers}, {"add", add_timer}, {"cancel", cancel_timers}};
    const char *name = invocation_operand(invocation, 0);

    if (!name)
        return list_timers(invocation);
    invocation->operands++;
    invocation->n_operands--;
    for (size_t i = 0; i < ELEMENTS(actions); i++)
        if (strcmp(name, actions[i].name) == 0)
            return actions[i].run(invocation);
    complain("usage: troupectl timer [list [ACTOR] | add ACTOR TYPE [-] | cancel [ID...]]");
    return EXIT_USAGE;
}
