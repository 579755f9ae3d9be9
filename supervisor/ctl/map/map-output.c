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

/* The longest sentence about a refusal; a longer one is cut. */
#define REASON_SIZE 2048

static const char *state_of(const struct troupe_result *result)
{
    if (result->error == 0)
        return troupe_end_name(result->end);
    return result->error == -ECONNRESET ? "unknown" : "refused";
}

static void print_json(const struct options *options, const struct window_line *line,
                       const char *group, const char *file)
{
    const struct troupe_result *result = &line->result;
    bool refused = result->error < 0;
    char text[REASON_SIZE];
    const char *reason = *result->reason ? result->reason : NULL;
    json_t *object;

    if (refused)
        reason = troupe_explain_refused(result->error, group, result->reason, text, sizeof(text));
    object = json_pack("{s:I, s:s, s:s*, s:i, s:i, s:s*, s:s*, s:o*}", "line",
                       (json_int_t)line->number + 1, "state", state_of(result), "id",
                       *result->id ? result->id : NULL, "attempts", (int)result->attempts, "code",
                       result->code, "reason", reason, "file", file, "result",
                       refused || file ? NULL : field_payload_new(result->data, result->size));
    if (object && options->tag)
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
    if (options->tag) {
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

static int tell(const struct map_failures *failures, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    char where[FORMAT_SIZE];

    snprintf(where, sizeof(where), "line %" PRIu64 ": ", line->number + 1);
    if (result->error == -ECONNRESET)
        return explain_unknown(where, result->id);
    if (result->error == 0)
        return explain_end(where, result);
    return explain_refused(where, failures->group, result->error, result->reason);
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

    if (repeats(failures, line)) {
        failures->last++;
        return explain_status(result);
    }
    map_failures_end(failures);
    failures->first = failures->last = line->number + 1;
    failures->end = result->end;
    failures->error = result->error;
    snprintf(failures->reason, sizeof(failures->reason), "%s", result->reason);
    return tell(failures, line);
}

/* ---- progress ---- */

#define INTERVAL  (100 * USEC_PER_MSEC)
#define BAR_WIDTH 24
/* The weight of the newest interval in the smoothed rate. */
#define SMOOTHING 0.08

void progress_init(struct progress *progress, const char *title, bool quiet, usec_t now)
{
    *progress = (struct progress){.title = title, .started_at = now, .shown_at = now};
    terminal_init(&progress->terminal, stderr);
    progress->enabled = progress->terminal.is_terminal && !quiet;
}

static usec_t progress_left(double position, usec_t elapsed)
{
    if (position <= 0.001 || elapsed < USEC_PER_SEC / 2)
        return USEC_INFINITY;
    return position >= 1 ? 0 : (usec_t)((double)elapsed * (1 - position) / position);
}

static void measure_rate(struct progress *progress, uint64_t done, usec_t now)
{
    double seconds = (double)(now - progress->shown_at) / (double)USEC_PER_SEC;
    double rate = (double)(done - progress->shown_done) / seconds;

    progress->rate =
        progress->rate > 0 ? progress->rate * (1 - SMOOTHING) + rate * SMOOTHING : rate;
    progress->shown_done = done;
    progress->shown_at = now;
}

static char *draw_bar(char *buffer, size_t size, double position)
{
    unsigned full = (unsigned)(position * BAR_WIDTH + 0.5);
    size_t used = 0;

    used += (size_t)snprintf(buffer + used, size - used, "%s", GREEN);
    for (unsigned i = 0; i < full; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s", "━");
    used += (size_t)snprintf(buffer + used, size - used, "%s", PLAIN DIM);
    for (unsigned i = full; i < BAR_WIDTH; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s", "─");
    snprintf(buffer + used, size - used, "%s %3.0f%%  ", PLAIN, position * 100);
    return buffer;
}

static void show(const struct progress *progress, const struct progress_counts *counts, usec_t now)
{
    usec_t elapsed = now - progress->started_at;
    usec_t left = progress_left(counts->position, elapsed);
    char bar[BAR_WIDTH * 4 + 64] = "", failed[96] = "", retried[96] = "";

    if (counts->position >= 0)
        draw_bar(bar, sizeof(bar), counts->position);
    if (counts->failed > 0)
        snprintf(failed, sizeof(failed), ", " RED "%s failed" PLAIN, COUNT(counts->failed));
    if (counts->retried > 0)
        snprintf(retried, sizeof(retried), ", " YELLOW "%s retried" PLAIN, COUNT(counts->retried));
    fputs("\r", stderr);
    terminal_print_over(&progress->terminal, "%s  %s%s done%s%s  %s/s  %s%s%s", progress->title,
                        bar, COUNT(counts->done), failed, retried, COUNT((uint64_t)progress->rate),
                        left == USEC_INFINITY ? SPAN(elapsed) : SPAN(left),
                        left == USEC_INFINITY ? "" : " left",
                        counts->queue_full ? "  " YELLOW "queue full" PLAIN : "");
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_update(struct progress *progress, const struct progress_counts *counts, usec_t now)
{
    if (!progress->enabled || now - progress->shown_at < INTERVAL)
        return;
    terminal_measure(&progress->terminal);
    measure_rate(progress, counts->done, now);
    show(progress, counts, now);
    progress->visible = true;
}

void progress_hide(struct progress *progress)
{
    if (!progress->visible)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->visible = false;
}
