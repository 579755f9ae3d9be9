/* SPDX-License-Identifier: MIT */

/* The verbs dead-letters, retry and purge. */

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <inttypes.h>
#include <string.h>

static bool has_filter(const struct options *options)
{
    return options->from || options->to || options->type || options->reason || options->since > 0 ||
           options->older_than > 0 || options->of_key || options->cause || options->text;
}

static json_t *filter_parameters(const struct options *options)
{
    return json_pack("{s:{s:s*, s:s*, s:s*, s:s*, s:o*, s:s*, s:o*, s:o*, s:o*}}", "filter", "text",
                     options->text, "sender", options->from, "recipient", options->to, "type",
                     options->type, "reason", field_enum_new(options->reason), "key",
                     options->of_key, "cause", field_enum_new(options->cause), "since_at",
                     field_ago(options->since), "until_at", field_ago(options->older_than));
}

/* A message also has a reason code and a sender. */
static const struct list_column letter_columns[] = {
    {"ID", "{id}", LIST_RIGHT},
    {"WHEN", "{at:ago}", LIST_LEFT},
    {"GROUP", "{recipient}", LIST_LEFT},
    {"JOB", "[{job}|message {type}]", LIST_LEFT},
    {"TRIES", "{attempts}", LIST_RIGHT},
    {"WHY", "[{job:if}{text:line}|{reason:enum}[, from {sender}][: {text:line}]]", LIST_LEFT},
    {0},
};

/* Without a filter, shows the totals since the supervisor started. */
static void show_totals(const struct invocation *invocation, const json_t *reply)
{
    const json_t *counts = json_object_get(reply, "counts");
    struct buffer totals = BUFFER_NULL;
    _cleanup_free_ char *text = NULL;

    for (size_t i = 0; i < json_array_size(counts); i++) {
        _cleanup_free_ char *total =
            pattern_text("{reason:enum} {count:count}", json_array_get(counts, i), 0);

        buffer_add_string(&totals, i > 0 ? ", " : "");
        buffer_add_string(&totals, total ? total : "");
    }
    text = buffer_take(&totals, NULL);
    if (text && *text && !has_filter(&invocation->options))
        terminal_print(&invocation->out, DIM "so far, by reason: %s" PLAIN, text);
}

static int list(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_ACTORS "ListDeadLetters",
                                           .array = "letters",
                                           .none = "None.",
                                           .columns = letter_columns,
                                           .remark = show_totals};

    return listing_run(invocation, &listing, filter_parameters(&invocation->options),
                       invocation->options.limit);
}

static void show_content(const struct terminal *terminal, const json_t *letter, usec_t now)
{
    if (field_has(letter, "payload") && !field_true(letter, "restricted") &&
        !field_true(letter, "payload_dropped"))
        show_payload(terminal, "   Payload: ", letter, "payload");
    else
        pattern_print(terminal,
                      "   Payload: [{restricted}" DIM SHOW_RESTRICTED PLAIN
                      "|{payload_dropped}{payload_bytes:bytes}, not kept: there was no room"
                      "|{payload_bytes:bytes}, too large to be shown]",
                      letter, now);
}

/* Handlers fail with a negative errno; the code of a job can be any number. */
static void show_code(const struct terminal *terminal, int64_t code)
{
    const char *name = code < 0 && code > -4096 ? strerrorname_np((int)-code) : NULL;

    terminal_print(terminal, "      Code: %" PRId64 "%s%s%s", code, name ? " (" : "",
                   name ? name : "", name ? ")" : "");
}

static void show_letter(const struct invocation *invocation, const json_t *reply)
{
    const struct terminal *terminal = &invocation->out;
    const json_t *letter = json_object_get(reply, "letter");
    const json_t *deaths = json_object_get(letter, "deaths");
    const usec_t now = clock_realtime();

    pattern_print(terminal,
                  BOLD "{id}" PLAIN ": " RED "{reason:enum}" PLAIN ", {at:ago} ({at:time})\n"
                       "[       Why: {text:line}]",
                  letter, now);
    show_more_lines(terminal, "            ", field_text(letter, "text"));
    if (field_has(letter, "code"))
        show_code(terminal, field_int(letter, "code"));
    pattern_print(terminal,
                  "[      From: {sender}]\n"
                  "[        To: {recipient}]\n"
                  "[       Job: {job}|      Type: {type}|      Type: ]\n"
                  "[       Key: {key}|{key=}       Key: ]\n"
                  "[  Attempts: {attempts}]",
                  letter, now);
    show_content(terminal, letter, now);
    for (size_t i = 0; i < json_array_size(deaths); i++) {
        putchar('\n');
        show_death(terminal, json_array_get(deaths, i), now);
    }
}

/* Makes the parameters for one letter, given by its number or by the id of its job. */
static int letter_parameters(struct invocation *invocation, const char *operand, json_t **ret)
{
    json_auto_t *reply = NULL;
    const json_t *job;
    int64_t id;
    int r;

    if (value_number(operand, 1, INT64_MAX, &id) == 0) {
        *ret = json_pack("{s:I}", "id", (json_int_t)id);
        return EXIT_OK;
    }
    r = call(invocation, CALL_JOBS "Get", json_pack("{s:s}", "id", operand), false, &reply);
    if (r != EXIT_OK)
        return r;
    job = json_object_get(reply, "job");
    if (!field_has(job, "dead_letter")) {
        complain("job '%s' is no dead letter: it is %s", operand, field_text(job, "state"));
        return EXIT_NOT_FOUND;
    }
    *ret = json_pack("{s:I}", "id", (json_int_t)field_int(job, "dead_letter"));
    return EXIT_OK;
}

static int show_one(struct invocation *invocation, const char *operand)
{
    json_t *parameters;
    int r = letter_parameters(invocation, operand, &parameters);

    if (r != EXIT_OK)
        return r;
    return call_print(invocation, CALL_ACTORS "GetDeadLetter", parameters, false, show_letter);
}

static int show_filtered(struct invocation *invocation)
{
    json_auto_t *reply = NULL;
    const json_t *letters;
    int r = pages_collect(invocation, CALL_ACTORS "ListDeadLetters",
                          filter_parameters(&invocation->options), "letters",
                          invocation->options.limit, &reply);

    invocation->lines = true;
    letters = json_object_get(reply, "letters");
    for (size_t i = 0; r == EXIT_OK && i < json_array_size(letters); i++) {
        const json_int_t id = field_int(json_array_get(letters, i), "id");

        r = call_print(invocation, CALL_ACTORS "GetDeadLetter", json_pack("{s:I}", "id", id), false,
                       show_letter);
    }
    return r;
}

/* ---- retry and purge ---- */

static bool is_retry(const struct invocation *invocation)
{
    return strcmp(invocation->verb->name, "retry") == 0;
}

static void show_changed(const struct invocation *invocation, const json_t *reply)
{
    const bool retry = is_retry(invocation);
    const char *pattern = retry ? "[{job}|{requeued:count} requeued]" : "{purged:count} purged";

    if (invocation->options.dry_run)
        pattern = retry ? "{requeued:count} would be sent again" : "{purged:count} would be purged";
    else if (invocation->options.quiet || (retry && invocation->lines && !field_has(reply, "job")))
        return;
    pattern_print(&invocation->out, pattern, reply, 0);
}

/* Says what a call that changes dead letters could not change. Returns an exit status. */
static int show_left(const json_t *reply)
{
    const uint64_t n_failed = field_count(reply, "failed");

    if (n_failed > 0)
        complain("%s could not be sent and stay; the last: %s", COUNT(n_failed),
                 field_text(reply, "problem"));
    if (field_has(reply, "store_problem"))
        complain("those on disk stay: %s", field_text(reply, "store_problem"));
    return n_failed > 0 || field_has(reply, "store_problem") ? EXIT_FAILED : EXIT_OK;
}

static int change(struct invocation *invocation, json_t *parameters)
{
    const char *to = invocation->options.send_to;
    const bool retry = is_retry(invocation), several = json_object_get(parameters, "filter");
    json_auto_t *reply = NULL;
    int r;

    if (parameters && retry && to)
        json_object_set_new(parameters, "to", json_string(to));
    r = call(invocation, retry ? CALL_ACTORS "Requeue" : CALL_ACTORS "Purge", parameters, several,
             &reply);
    if (r == EXIT_OK)
        r = output_reply(invocation, reply, show_changed);
    return r == EXIT_OK ? show_left(reply) : r;
}

static int change_one(struct invocation *invocation, const char *operand)
{
    json_t *parameters;
    int r = letter_parameters(invocation, operand, &parameters);

    return r == EXIT_OK ? change(invocation, parameters) : r;
}

/* Changes what a filter matches. */
static int change_filtered(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    json_t *parameters;

    if (has_filter(options) == options->everything) {
        complain(options->everything ? "a filter and --all cannot be combined"
                                     : "ids, a filter (--to, --reason ...) or --all is missing");
        return EXIT_USAGE;
    }
    parameters = filter_parameters(options);
    if (parameters && options->dry_run)
        json_object_set_new(parameters, "dry_run", json_true());
    return change(invocation, parameters);
}

int verb_retry(struct invocation *invocation)
{
    const struct options *options = &invocation->options;

    if (invocation->n_operands == 0)
        return change_filtered(invocation);
    if (!has_filter(options) && !options->everything && !options->dry_run)
        return invocation_each(invocation, 0, change_one);
    complain("ids cannot be combined with a filter or --all");
    return EXIT_USAGE;
}

int verb_dead_letters(struct invocation *invocation)
{
    const char *action = invocation_operand(invocation, 0);
    const bool ids = invocation->n_operands > 1;

    if (!action || (strcmp(action, "list") == 0 && !ids))
        return list(invocation);
    if (strcmp(action, "show") == 0 && ids && !has_filter(&invocation->options))
        return invocation_each(invocation, 1, show_one);
    if (strcmp(action, "show") == 0 && !ids && has_filter(&invocation->options))
        return show_filtered(invocation);
    complain("usage: troupectl dead-letters [list | show ID... | show --to GROUP ...]");
    return EXIT_USAGE;
}
