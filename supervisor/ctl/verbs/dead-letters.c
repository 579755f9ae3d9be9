/* SPDX-License-Identifier: MIT */

/* The verbs dead-letters and errors: list, show, requeue and purge. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/pages.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Lines of a payload. */
#define PAYLOAD_LINES 20

static bool has_filter(const struct options *options)
{
    return options->from || options->to || options->type || options->reason || options->job ||
           options->since > 0;
}

/* `queue` NULL = both. */
static json_t *filter_json(const struct options *options, const char *queue)
{
    json_t *filter = json_pack("{s:s*, s:s*, s:s*, s:s*, s:o*, s:s*}", "queue", queue, "sender",
                               options->from, "recipient", options->to, "type", options->type,
                               "reason", field_enum_new(options->reason), "job", options->job);

    if (filter && options->since > 0)
        json_object_set_new(filter, "since_at",
                            json_integer((json_int_t)usec_sub(clock_realtime(), options->since)));
    return filter;
}

/* ---- list ---- */

/*
 * Adds the reason, up to the end of its first line. A message also has a reason code and a sender.
 */
static void add_why(struct table *table, const json_t *letter)
{
    const char *text = field_text(letter, "text");
    size_t first = strcspn(text, "\n");
    _cleanup_free_ char *line = strndup(text, first);
    bool job = field_has(letter, "job") && *text != '\0', sent = field_has(letter, "sender");

    table_add(table, "%s%s%s%s%s%s", job ? "" : SAFE(ENUM(letter, "reason")),
              !job && sent ? ", from " : "", !job && sent ? SAFE(field_text(letter, "sender")) : "",
              !job && *text ? ": " : "", SAFE_LINE(line ? line : ""),
              text[first] != '\0' && text[first + 1] != '\0' ? " …" : "");
}

static void show_list(const struct terminal *terminal, const json_t *letters, usec_t now)
{
    struct table table;

    table_init(&table, 6, "");
    table_add(&table, BOLD "ID" PLAIN);
    table_add(&table, BOLD "WHEN" PLAIN);
    table_add(&table, BOLD "GROUP" PLAIN);
    table_add(&table, BOLD "JOB" PLAIN);
    table_add(&table, BOLD "TRIES" PLAIN);
    table_add(&table, BOLD "WHY" PLAIN);
    table.right[0] = table.right[4] = true;
    for (size_t i = 0; i < json_array_size(letters); i++) {
        const json_t *letter = json_array_get(letters, i);

        table_add(&table, "%" PRId64, field_int(letter, "id"));
        table_add(&table, "%s", AGO(now, field_usec(letter, "at")));
        table_add(&table, "%s", SAFE(field_text(letter, "recipient")));
        if (field_has(letter, "job"))
            table_add(&table, "%s", SAFE(field_text(letter, "job")));
        else
            table_add(&table, "message %s", SAFE(field_text(letter, "type")));
        if (field_has(letter, "attempts"))
            table_add(&table, "%" PRId64, field_int(letter, "attempts"));
        else
            table_add(&table, "%s", "");
        add_why(&table, letter);
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

/* Shows the totals of both queues since the supervisor started. */
static void show_counts(const struct terminal *terminal, const json_t *counts)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *file = json_array_size(counts) > 0 ? open_memstream(&text, &size) : NULL;

    if (!file)
        return;
    for (size_t i = 0; i < json_array_size(counts); i++) {
        const json_t *count = json_array_get(counts, i);
        fprintf(file, "%s%s %s", i > 0 ? ", " : "", COUNT(field_count(count, "count")),
                SAFE(ENUM(count, "reason")));
    }
    if (fclose(file) == 0)
        terminal_print(terminal, DIM "so far, of both queues: %s" PLAIN, text);
}

static int list(struct invocation *invocation, const char *queue)
{
    const struct options *options = &invocation->options;
    const json_t *letters;
    json_t *reply;
    int r;

    r = pages_collect(invocation, CALL_ACTORS "ListDeadLetters",
                      json_pack("{s:o}", "filter", filter_json(options, queue)), "letters",
                      options->limit, NULL, NULL, &reply);
    if (r != EXIT_OK)
        return r;
    letters = json_object_get(reply, "letters");
    if (options->json)
        r = call_print_json(invocation, reply);
    else if (json_array_size(letters) > 0)
        show_list(&invocation->out, letters, clock_realtime());
    else if (!options->quiet)
        terminal_print(&invocation->out, "None.");
    pages_remark(invocation, reply, "letters");
    if (!options->json && !options->quiet && !has_filter(options))
        show_counts(&invocation->out, json_object_get(reply, "counts"));
    json_decref(reply);
    return r;
}

/* ---- show ---- */

static void show_field(const struct terminal *terminal, const json_t *letter, const char *label,
                       const char *name)
{
    if (field_has(letter, name))
        terminal_print(terminal, "%10s: %s", label, SAFE_LINE(field_text(letter, name)));
}

static void show_payload(const struct terminal *terminal, const json_t *letter)
{
    _cleanup_free_ char *data = NULL;
    const uint64_t bytes = field_count(letter, "payload_bytes");
    size_t size;

    if (field_true(letter, "restricted"))
        show_restricted(terminal, "   Payload: ", letter);
    else if (field_true(letter, "payload_dropped"))
        terminal_print(terminal, "   Payload: %s, not kept for want of room", BYTES(bytes));
    else if (field_payload(letter, "payload", &data, &size) < 0 || !data)
        terminal_print(terminal, "   Payload: %s, too large to be shown", BYTES(bytes));
    else if (!field_is(json_object_get(letter, "payload"), "encoding", "utf8"))
        terminal_print(terminal, "   Payload: %s, no text (--json shows it in base64)",
                       BYTES(bytes));
    else {
        terminal_print(terminal, "   Payload: %s", BYTES(bytes));
        show_quoted(terminal, "            ", data, PAYLOAD_LINES);
    }
}

/* Handlers fail with a negative errno; the code of a job can be any number. */
static void show_code(const struct terminal *terminal, int64_t code)
{
    const char *name = code < 0 && code > -4096 ? strerrorname_np((int)-code) : NULL;

    terminal_print(terminal, "      Code: %" PRId64 "%s%s%s", code, name ? " (" : "",
                   name ? name : "", name ? ")" : "");
}

static void show_letter(const struct terminal *terminal, const json_t *letter, usec_t now)
{
    const json_t *deaths = json_object_get(letter, "deaths");

    terminal_print(terminal, BOLD "%" PRId64 PLAIN ": %s%s" PLAIN ", %s (%s)",
                   field_int(letter, "id"), RED, SAFE(ENUM(letter, "reason")),
                   AGO(now, field_usec(letter, "at")), TIME(field_usec(letter, "at")));
    show_field(terminal, letter, "Why", "text");
    if (field_has(letter, "code"))
        show_code(terminal, field_int(letter, "code"));
    show_field(terminal, letter, "From", "sender");
    show_field(terminal, letter, "To", "recipient");
    show_field(terminal, letter, "Job", "job");
    if (!field_has(letter, "job"))
        show_field(terminal, letter, "Type", "type");
    show_field(terminal, letter, "Key", "key");
    if (field_has(letter, "attempts"))
        terminal_print(terminal, "  Attempts: %" PRId64, field_int(letter, "attempts"));
    show_payload(terminal, letter);
    for (size_t i = 0; i < json_array_size(deaths); i++) {
        putchar('\n');
        show_death(terminal, json_array_get(deaths, i), now);
    }
}

static int show_one(struct invocation *invocation, int64_t id)
{
    json_t *reply;
    int r;

    r = call(invocation, CALL_ACTORS "GetDeadLetter", json_pack("{s:I}", "id", (json_int_t)id),
             false, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json_line(reply);
    else
        show_letter(&invocation->out, json_object_get(reply, "letter"), clock_realtime());
    json_decref(reply);
    return r;
}

/* ---- requeue, purge ---- */

/* `*ret_failed`: how many could not be sent. */
static int requeue(struct invocation *invocation, json_t *parameters, uint64_t *ret_failed)
{
    const bool several = json_object_get(parameters, "filter");
    const char *to = invocation->options.send_to;
    json_t *reply;
    int r;

    if (parameters && to)
        json_object_set_new(parameters, "to", json_string(to));
    r = call(invocation, CALL_ACTORS "Requeue", parameters, several, &reply);
    if (r != EXIT_OK)
        return r;
    *ret_failed = field_count(reply, "failed");
    if (invocation->options.json)
        r = call_print_json_line(reply);
    else if (field_has(reply, "job") && !invocation->options.quiet)
        terminal_print(&invocation->out, "%s", SAFE(field_text(reply, "job")));
    else if (several && !invocation->options.quiet)
        terminal_print(&invocation->out, "%s requeued", COUNT(field_count(reply, "requeued")));
    if (field_has(reply, "problem"))
        complain("%s could not be sent and stay; the last: %s", COUNT(*ret_failed),
                 field_text(reply, "problem"));
    json_decref(reply);
    return r;
}

static int requeue_filtered(struct invocation *invocation, const char *queue)
{
    uint64_t failed = 0;
    int r =
        requeue(invocation, json_pack("{s:o}", "filter", filter_json(&invocation->options, queue)),
                &failed);

    return r == EXIT_OK && failed > 0 ? EXIT_FAILED : r;
}

static int purge(struct invocation *invocation, json_t *parameters)
{
    json_t *reply;
    int r;

    r = call(invocation, CALL_ACTORS "Purge", parameters, true, &reply);
    if (r != EXIT_OK)
        return r;
    if (invocation->options.json)
        r = call_print_json_line(reply);
    else if (!invocation->options.quiet)
        terminal_print(&invocation->out, "%s purged", COUNT(field_count(reply, "purged")));
    json_decref(reply);
    return r;
}

static int change_filtered(struct invocation *invocation, bool requeue, const char *queue)
{
    const struct options *options = &invocation->options;

    if (has_filter(options) == options->everything) {
        complain(options->everything ? "either a filter or --all"
                                     : "ids, a filter (--to, --reason ...) or --all is missing");
        return EXIT_USAGE;
    }
    if (requeue)
        return requeue_filtered(invocation, queue);
    return purge(invocation, json_pack("{s:o}", "filter", filter_json(options, queue)));
}

static int change_one(struct invocation *invocation, const char *what, int64_t id)
{
    json_t *parameters = json_pack("{s:I}", "id", (json_int_t)id);
    uint64_t failed;

    if (strcmp(what, "purge") == 0)
        return purge(invocation, parameters);
    return requeue(invocation, parameters, &failed);
}

/* Tries all ids; the last failure is the exit status. */
static int each_id(struct invocation *invocation, const char *what)
{
    int status = EXIT_OK;

    if (has_filter(&invocation->options) || invocation->options.everything) {
        complain("either ids or a filter");
        return EXIT_USAGE;
    }
    for (size_t i = 1; i < invocation->n_operands; i++) {
        int64_t id;
        int r;

        if (value_number(invocation->operands[i], 1, INT64_MAX, &id) < 0) {
            complain("'%s' is no id", invocation->operands[i]);
            return EXIT_USAGE;
        }
        if (strcmp(what, "show") == 0)
            r = show_one(invocation, id);
        else
            r = change_one(invocation, what, id);
        if (r == EXIT_UNREACHABLE)
            return r;
        if (r != EXIT_OK)
            status = r;
    }
    return status;
}

static int letters(struct invocation *invocation, const char *queue)
{
    const char *what = invocation_operand(invocation, 0);
    const bool ids = invocation->n_operands > 1;

    if (!what || (strcmp(what, "list") == 0 && !ids))
        return list(invocation, queue);
    if (strcmp(what, "requeue") == 0 || strcmp(what, "purge") == 0)
        return ids ? each_id(invocation, what)
                   : change_filtered(invocation, strcmp(what, "requeue") == 0, queue);
    if (strcmp(what, "show") == 0 && ids)
        return each_id(invocation, what);
    complain("usage: troupectl %s [list | show ID... | requeue [ID...] | purge [ID...]]",
             invocation->verb->name);
    return EXIT_USAGE;
}

int verb_dead_letters(struct invocation *invocation)
{
    return letters(invocation, "dead_letters");
}

int verb_errors(struct invocation *invocation)
{
    return letters(invocation, "errors");
}
