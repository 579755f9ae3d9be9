/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/map-output.h"

#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/command/verb-options.h"
#include "supervisor/ctl/map/window.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static void print_json(const struct options *options, const struct window_line *line,
                       const char *group, const char *file)
{
    json_t *object = explain_json(group, &line->result, file);

    if (object)
        json_object_set_new(object, "line", json_integer((json_int_t)line->number + 1));
    if (object && options->show_input)
        json_object_set_new(object, "input", field_payload_new(line->input, line->size));
    if (object)
        (void)output_write(object, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

/* Escapes newlines, because each result has one line. */
static void print_on_one_line(const char *data, size_t size)
{
    const char *end = data + size;

    if (size > 0 && end[-1] == '\n')
        end--;
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *stop_at = newline ? newline : end;

        fwrite(data, 1, (size_t)(stop_at - data), stdout);
        if (newline)
            fputs("\\n", stdout);
        data = newline ? newline + 1 : end;
    }
}

int map_output_write(const struct options *options, const char *group,
                     const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    /* Reasons go to standard error. */
    bool succeeded = result->error == 0 && result->end == TROUPE_SUCCEEDED;
    char path[PATH_MAX], *file = NULL;
    int r = 0;

    if (succeeded && options->output_directory) {
        file = path;
        if (snprintf(path, sizeof(path), "%s/%" PRIu64, options->output_directory,
                     line->number + 1) >= (int)sizeof(path))
            r = -ENAMETOOLONG;
        else
            r = output_replace_file(path, result->data, result->size);
    }
    if (r < 0)
        return r;
    if (options->json) {
        print_json(options, line, group, file);
        return 0;
    }
    if (options->show_input) {
        fwrite(line->input, 1, line->size, stdout);
        putchar('\t');
    }
    if (file)
        fputs(file, stdout);
    else if (succeeded && options->null)
        fwrite(result->data, 1, result->size, stdout);
    else if (succeeded)
        print_on_one_line(result->data, result->size);
    putchar(options->null ? '\0' : '\n');
    return 0;
}

/* ---- failures ---- */

/* Whether the line says the same as the one before, as happens when the supervisor stops. */
static bool repeats(const struct map_failures *failures, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    const bool common = result->error < 0 || result->end == TROUPE_CANCELLED;

    return common && failures->last == line->number && failures->error == result->error &&
           (result->error < 0 || failures->end == result->end) &&
           strcmp(failures->reason, result->reason) == 0;
}

void map_failures_end(struct map_failures *failures)
{
    if (failures->last > failures->first)
        complain("lines %" PRIu64 " to %" PRIu64 ": the same", failures->first + 1, failures->last);
    failures->first = failures->last = 0;
}

int map_failures_add(struct map_failures *failures, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    char where[FORMAT_SIZE];

    if (repeats(failures, line)) {
        failures->last++;
        return explain_status(result);
    }
    map_failures_end(failures);
    failures->first = failures->last = line->number + 1;
    failures->end = result->end;
    failures->error = result->error;
    snprintf(failures->reason, sizeof(failures->reason), "%s", result->reason);
    snprintf(where, sizeof(where), "line %" PRIu64 ": ", line->number + 1);
    return explain_result(where, failures->group, result);
}

/* ---- progress ---- */

#define INTERVAL (100 * USEC_PER_MSEC)

void progress_init(struct progress *progress, const char *title, bool quiet)
{
    const usec_t now = clock_now();

    *progress = (struct progress){.title = title, .started_at = now, .shown_at = now};
    terminal_init(&progress->terminal, stderr);
    progress->enabled = progress->terminal.is_terminal && !quiet;
}

void progress_update(struct progress *progress, uint64_t n_done, uint64_t n_failed)
{
    const usec_t now = clock_now(), elapsed = now - progress->started_at;
    char failed[96] = "";

    if (!progress->enabled || now - progress->shown_at < INTERVAL)
        return;
    progress->shown_at = now;
    progress->visible = true;
    if (n_failed > 0)
        snprintf(failed, sizeof(failed), ", " RED "%s failed" PLAIN, COUNT(n_failed));
    terminal_measure(&progress->terminal);
    fputs("\r", stderr);
    terminal_print_over(&progress->terminal, "%s  %s done%s  %s/s  %s", progress->title,
                        COUNT(n_done), failed, COUNT(n_done * USEC_PER_SEC / elapsed),
                        SPAN(elapsed));
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_hide(struct progress *progress)
{
    if (!progress->visible)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->visible = false;
}
