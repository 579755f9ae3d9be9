/* SPDX-License-Identifier: MIT */

/* The verbs tell, ask, schedule, unschedule and timers. */

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/input.h"
#include "supervisor/ctl/call/pages.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

/* A payload of this size always fits into a request: JSON needs at most six characters per byte. */
#define PAYLOAD_MAX (VARLINK_CLIENT_REQUEST_MAX / 8)

/* Added to the time-out of an ask to wait for the supervisor's answer. */
#define ASK_GRACE (5 * USEC_PER_SEC)

/* Builds the parameters from the operands ACTOR TYPE [-] and the options for payload and key. */
static int message_parameters(struct invocation *invocation, json_t **ret)
{
    _cleanup_free_ char *data = NULL;
    json_t *payload;
    size_t size;
    int r;

    r = input_payload(invocation, invocation_operand(invocation, 2), &data, &size);
    if (r != EXIT_OK)
        return r;
    if (size > PAYLOAD_MAX) {
        complain("a message from here has at most %s; this one has %s", BYTES(PAYLOAD_MAX),
                 BYTES(size));
        return EXIT_USAGE;
    }
    payload = field_payload_new(data, size);
    *ret = payload ? json_pack("{s:s, s:s, s:s*, s:o}", "to", invocation_operand(invocation, 0),
                               "type", invocation_operand(invocation, 1), "key",
                               invocation->options.key, "payload", payload)
                   : NULL;
    return *ret ? EXIT_OK : call_no_memory();
}

int verb_tell(struct invocation *invocation)
{
    json_t *parameters, *reply;
    int r;

    r = message_parameters(invocation, &parameters);
    if (r == EXIT_OK)
        r = call(invocation, CALL_ACTORS "Tell", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    json_decref(reply);
    return r;
}

static int write_reply(const json_t *reply)
{
    _cleanup_free_ char *data = NULL;
    size_t size;

    if (field_payload(reply, "payload", &data, &size) < 0) {
        complain("the reply cannot be read");
        return EXIT_FAILED;
    }
    if (size > 0)
        fwrite(data, 1, size, stdout);
    return EXIT_OK;
}

int verb_ask(struct invocation *invocation)
{
    struct options *options = &invocation->options;
    const usec_t timeout = options->ask_timeout > 0 ? options->ask_timeout : PROTOCOL_ASK_TIMEOUT;
    json_t *parameters, *reply;
    int r;

    r = message_parameters(invocation, &parameters);
    if (r != EXIT_OK)
        return r;
    json_object_set_new(parameters, "timeout_usec", json_integer((json_int_t)timeout));
    if (options->reply_type)
        json_object_set_new(parameters, "reply_type", json_string(options->reply_type));
    options->timeout = usec_add(timeout, ASK_GRACE);
    r = call(invocation, CALL_ACTORS "Ask", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    r = options->json ? call_print_json(invocation, reply) : write_reply(reply);
    json_decref(reply);
    return r;
}

/* ---- later ---- */

static int add_times(const struct options *options, json_t *parameters)
{
    const usec_t delay = options->delay > 0 ? options->delay : options->every;

    if (options->at > 0 && options->delay > 0) {
        complain("either --at or --delay");
        return EXIT_USAGE;
    }
    if (options->at == 0 && delay == 0) {
        complain("--delay SPAN, --at TIME or --every SPAN is missing");
        return EXIT_USAGE;
    }
    if (options->at > 0)
        json_object_set_new(parameters, "at", json_integer((json_int_t)options->at));
    else
        json_object_set_new(parameters, "delay_usec", json_integer((json_int_t)delay));
    if (options->every > 0)
        json_object_set_new(parameters, "period_usec", json_integer((json_int_t)options->every));
    return EXIT_OK;
}

int verb_schedule(struct invocation *invocation)
{
    json_t *parameters, *reply;
    int r;

    r = message_parameters(invocation, &parameters);
    if (r != EXIT_OK)
        return r;
    r = add_times(&invocation->options, parameters);
    if (r != EXIT_OK) {
        json_decref(parameters);
        return r;
    }
    r = call(invocation, CALL_ACTORS "Schedule", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json(invocation, reply);
    else
        terminal_print(&invocation->out, "%" PRId64, field_int(reply, "id"));
    json_decref(reply);
    return r;
}

static int unschedule(struct invocation *invocation, json_t *parameters)
{
    json_t *reply;
    int r;

    r = call(invocation, CALL_ACTORS "Unschedule", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json_line(reply);
    else if (!invocation->options.quiet && invocation->options.to)
        terminal_print(&invocation->out, "%s cancelled", COUNT(field_count(reply, "cancelled")));
    json_decref(reply);
    return r;
}

int verb_unschedule(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    int status = EXIT_OK;

    if (invocation->n_operands == 0 && options->to && options->type)
        return unschedule(invocation,
                          json_pack("{s:s, s:s}", "to", options->to, "type", options->type));
    if (invocation->n_operands == 0 || options->to || options->type) {
        complain("either ids, or both --to ACTOR and --type TYPE");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < invocation->n_operands; i++) {
        int64_t id;
        int r;

        if (value_number(invocation->operands[i], 1, INT64_MAX, &id) < 0) {
            complain("'%s' is no timer's id; 'troupectl timers' lists them",
                     invocation->operands[i]);
            return EXIT_USAGE;
        }
        r = unschedule(invocation, json_pack("{s:I}", "id", (json_int_t)id));
        if (r == EXIT_UNREACHABLE)
            return r;
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}

static void show_timers(const struct terminal *terminal, const json_t *timers, usec_t now)
{
    struct table table;

    table_init(&table, 6, "");
    table_add(&table, BOLD "ID" PLAIN);
    table_add(&table, BOLD "TO" PLAIN);
    table_add(&table, BOLD "TYPE" PLAIN);
    table_add(&table, BOLD "IN" PLAIN);
    table_add(&table, BOLD "EVERY" PLAIN);
    table_add(&table, BOLD "OWNER" PLAIN);
    table.right[3] = table.right[4] = true;
    for (size_t i = 0; i < json_array_size(timers); i++) {
        const json_t *timer = json_array_get(timers, i);

        table_add(&table, "%" PRId64, field_int(timer, "id"));
        table_add(&table, "%s", SAFE(field_text(timer, "to")));
        table_add(&table, "%s", SAFE(field_text(timer, "type")));
        table_add(&table, "%s", SPAN(usec_sub(field_usec(timer, "next_at"), now)));
        table_add(&table, "%s",
                  field_has(timer, "period_usec") ? SPAN(field_usec(timer, "period_usec")) : "");
        table_add(&table, "%s", SAFE(field_text(timer, "owner")));
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

int verb_timers(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    const json_t *timers;
    json_t *reply;
    int r;

    r = pages_collect(invocation, CALL_ACTORS "ListTimers",
                      json_pack("{s:s*}", "to", invocation_operand(invocation, 0)), "timers",
                      options->limit, NULL, NULL, &reply);
    if (r != EXIT_OK)
        return r;
    timers = json_object_get(reply, "timers");
    if (options->json)
        r = call_print_json(invocation, reply);
    else if (json_array_size(timers) > 0)
        show_timers(&invocation->out, timers, clock_realtime());
    else if (!options->quiet)
        terminal_print(&invocation->out, "No timers.");
    pages_remark(invocation, reply, "timers");
    json_decref(reply);
    return r;
}
