/* SPDX-License-Identifier: MIT */

/* The verb profile: in which functions a worker spends its time, as a table or a picture. */

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/record/flame.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The defaults of --for and --limit. */
#define DURATION (10 * USEC_PER_SEC)
#define ROWS     20

/* ---- the table ---- */

/* Samples in which the thread ran in this function itself, ran in it or what it calls, and waited
 * in it itself. */
struct row {
    const char *function;
    uint64_t self, total, waits;
    size_t last_stack; /* the last stack that has it, plus 1 */
};

struct table {
    json_t *index; /* numbers of rows, plus 1, by function */
    struct row *rows;
    size_t n_rows;
};

static struct row *row_of(struct table *table, const char *function)
{
    size_t i = (size_t)json_integer_value(json_object_get(table->index, function));

    if (i == 0) {
        struct row *more = realloc(table->rows, (table->n_rows + 1) * sizeof(*more));

        if (!more)
            return NULL;
        table->rows = more;
        i = ++table->n_rows;
        table->rows[i - 1] = (struct row){.function = function};
        if (json_object_set_new(table->index, function, json_integer((json_int_t)i)) < 0)
            return NULL;
    }
    return &table->rows[i - 1];
}

/* A function that calls itself counts once in a stack. */
static bool count_stack(struct table *table, const json_t *stack, size_t number)
{
    const json_t *functions = json_object_get(stack, "functions");
    const bool waits = field_true(stack, "waits");
    const uint64_t n = field_count(stack, "count");

    for (size_t i = 0; i < json_array_size(functions); i++) {
        const char *name = json_string_value(json_array_get(functions, i));
        struct row *row = row_of(table, name ? name : "");

        if (!row)
            return false;
        if (!waits && row->last_stack != number + 1)
            row->total += n;
        row->last_stack = number + 1;
        if (i + 1 == json_array_size(functions))
            *(waits ? &row->waits : &row->self) += n;
    }
    return true;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *first = a, *second = b;

    if (first->self != second->self)
        return first->self < second->self ? 1 : -1;
    if (first->waits != second->waits)
        return first->waits < second->waits ? 1 : -1;
    return (first->total < second->total) - (first->total > second->total);
}

static void print_rows(const struct invocation *invocation, const struct table *table,
                       uint64_t n_samples)
{
    const size_t limit = invocation->options.limit > 0 ? (size_t)invocation->options.limit : ROWS;
    const double percent = n_samples > 0 ? 100.0 / (double)n_samples : 0;

    terminal_print(&invocation->out, BOLD "  SELF   TOTAL   WAITS  FUNCTION" PLAIN);
    for (size_t i = 0; i < table->n_rows && i < limit; i++) {
        const struct row *row = &table->rows[i];

        terminal_print(&invocation->out, "%5.1f%%  %5.1f%%  %5.1f%%  %s",
                       (double)row->self * percent, (double)row->total * percent,
                       (double)row->waits * percent, SAFE(row->function));
    }
    if (table->n_rows > limit)
        terminal_print(&invocation->out, DIM "and %s more" PLAIN, COUNT(table->n_rows - limit));
}

static void show_profile(const struct invocation *invocation, const json_t *profile)
{
    const json_t *stacks = json_object_get(profile, "stacks");
    const uint64_t n_samples = field_count(profile, "samples");
    const usec_t took = field_usec(profile, "took_usec");
    struct table table = {.index = json_object()};
    bool complete = table.index;

    for (size_t i = 0; complete && i < json_array_size(stacks); i++)
        complete = count_stack(&table, json_array_get(stacks, i), i);
    if (complete && n_samples > 0) {
        if (table.n_rows > 0)
            qsort(table.rows, table.n_rows, sizeof(*table.rows), compare_rows);
        terminal_print(&invocation->out,
                       "%s, pid %lld: %s samples in %s; it was stopped for %.1f%% of the time",
                       SAFE(field_text(profile, "worker")), (long long)field_int(profile, "pid"),
                       COUNT(n_samples), SPAN(took),
                       took > 0 ? 100.0 * (double)field_usec(profile, "stopped_usec") / (double)took
                                : 0.0);
        print_rows(invocation, &table, n_samples);
    }
    if (!complete)
        (void)call_no_memory();
    free(table.rows);
    json_decref(table.index);
}

/* ---- the verb ---- */

static int write_file(const char *path, const json_t *profile, bool svg)
{
    struct output_file file;
    int r = output_file_open(&file, path);

    if (r == 0) {
        if (svg)
            r = flame_write_svg(file.file, profile);
        else
            flame_write_folded(file.file, profile);
        r = output_file_close(&file, r == 0 && ferror(file.file) ? -EIO : r);
    }
    if (r == 0)
        return EXIT_OK;
    complain("cannot write %s: %s", path, strerror(-r));
    return EXIT_FAILED;
}

static int call_profile(struct invocation *invocation, const char *member,
                        struct varlink_reply *ret)
{
    const usec_t given = invocation->options.duration;

    return call_any(invocation, CALL_SUPERVISOR "Profile",
                    json_pack("{s:s, s:I}", member, invocation_operand(invocation, 0), "for_usec",
                              (json_int_t)(given > 0 ? given : DURATION)),
                    true, ret);
}

static int show(struct invocation *invocation, const json_t *profile)
{
    const struct options *options = &invocation->options;
    int r = EXIT_OK;

    if (field_has(profile, "stack_missing") || field_count(profile, "samples") == 0) {
        complain("no samples of %s: %s", field_text(profile, "worker"),
                 field_has(profile, "stack_missing") ? field_text(profile, "stack_missing")
                                                     : "it ended, or could not be stopped");
        return EXIT_FAILED;
    }
    if (field_count(profile, "left_out") > 0)
        complain("%s samples are left out: there are too many different stacks",
                 COUNT(field_count(profile, "left_out")));
    if (options->folded)
        r = write_file(options->folded, profile, false);
    if (options->svg && r == EXIT_OK)
        r = write_file(options->svg, profile, true);
    if (r == EXIT_OK && (options->json || (!options->folded && !options->svg)))
        r = output_reply(invocation, profile, show_profile);
    return r;
}

/* A name that is no worker's is a job's. */
int verb_profile(struct invocation *invocation)
{
    struct varlink_reply reply;
    int r = call_profile(invocation, "target", &reply);

    if (r == EXIT_OK && !strchr(invocation_operand(invocation, 0), '/') &&
        varlink_reply_is(&reply, CALL_SUPERVISOR "NoSuchTarget")) {
        varlink_reply_deinit(&reply);
        r = call_profile(invocation, "job", &reply);
    }
    if (r != EXIT_OK)
        return r;
    r = reply.error ? explain_error(reply.error, reply.parameters)
                    : show(invocation, reply.parameters);
    varlink_reply_deinit(&reply);
    return r;
}
