/* SPDX-License-Identifier: MIT */

/*
 * The verb map: submits a job per line of input and writes the results in the order of the input.
 * The window (window.h) decides what is submitted and written when; this file connects it with
 * input, supervisor, output and user.
 */

#include "supervisor/ctl/call/attach.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/interrupt.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/map/map-failures.h"
#include "supervisor/ctl/map/map-output.h"
#include "supervisor/ctl/map/progress.h"
#include "supervisor/ctl/map/reader.h"
#include "supervisor/ctl/map/window.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio_ext.h>
#include <string.h>

/* The longest time to wait before the other inputs are checked. */
#define GLANCE       (100 * USEC_PER_MSEC)
#define INPUT_GLANCE (10 * USEC_PER_MSEC)

struct map {
    struct invocation *invocation;
    const char *group;
    struct attachment_client attached;
    struct troupe_job_options job;
    struct reader reader;
    struct window window;
    struct progress progress;
    struct map_failures failures;
    usec_t started_at;
    bool end;    /* of the input */
    bool stop;   /* stop reading and submitting */
    bool broken; /* nobody reads the output any more */
    bool lost;   /* the supervisor is gone */
    int status;  /* of the first failure */
    uint64_t n_ended[TROUPE_DEAD + 1], n_refused, n_retried, n_given_up;
    uint64_t n_bytes; /* bytes of input whose results have been written */
};

static uint64_t count_ended(const struct map *map)
{
    uint64_t n = map->n_refused;

    for (size_t i = 0; i <= TROUPE_DEAD; i++)
        n += map->n_ended[i];
    return n;
}

static void fail(struct map *map, int status)
{
    if (map->status == EXIT_OK)
        map->status = status;
}

static void stop(struct map *map, int status)
{
    fail(map, status);
    map->stop = true;
}

static void show_progress(struct map *map)
{
    usec_t now = clock_now();
    uint64_t done = count_ended(map);
    double size = (double)map->reader.size, position = -1;

    /* The last line may lack its separator, and a file may grow. */
    if (map->reader.size > 0)
        position = (double)map->n_bytes < size ? (double)map->n_bytes / size : 1;
    struct progress_counts counts = {
        .done = done,
        .failed = done - map->n_ended[TROUPE_SUCCEEDED],
        .retried = map->n_retried,
        .position = position,
        .queue_full = now < map->window.hold,
    };

    progress_update(&map->progress, &counts, now);
}

/* ---- input ---- */

static void read_lines(struct map *map)
{
    const char *line;
    size_t size;

    while (!map->stop && !map->end && !window_full(&map->window)) {
        bool idle = window_empty(&map->window);
        int r;

        r = reader_next(&map->reader, 0, &line, &size);
        if (r == READER_E_LATER && idle) {
            fflush(stdout);
            r = reader_next(&map->reader, (int)(GLANCE / USEC_PER_MSEC), &line, &size);
        }
        if (r == 0)
            r = window_add(&map->window, line, size);
        if (r == 0)
            continue;
        if (r == READER_E_END)
            map->end = true;
        if (r == -EMSGSIZE)
            complain("line %" PRIu64 " is longer than %s", map->window.next + 1,
                     BYTES(READER_LINE_MAX));
        else if (r < 0 && r != -EINTR)
            complain("cannot read the input: %s", strerror(-r));
        if (r < 0 && r != -EINTR)
            stop(map, EXIT_FAILED);
        return;
    }
}

/* ---- submitting ---- */

/* Treats a line that cannot be sent like a refused one. */
static void refuse(struct map *map, struct window_line *line, int error)
{
    struct troupe_result result = {
        .cookie = line->number, .error = error, .reason = "", .data = ""};

    window_submitted(&map->window, line);
    (void)window_ended(&map->window, &result, clock_now());
}

static void submit_lines(struct map *map)
{
    usec_t now = clock_now();
    struct window_line *line;

    while (!map->stop && (line = window_ready(&map->window, now))) {
        int r;

        r = troupe_client_submit(map->attached.client, map->attached.group, &map->job, line->input,
                                 line->size, line->number);
        if (r == 0) {
            window_submitted(&map->window, line);
            continue;
        }
        if (r == -EPIPE)
            map->lost = true;
        else if (r == -EINVAL || r == -EMSGSIZE || map->window.n_submitted == 0)
            refuse(map, line, r);
        /* Other resources become available when results have been taken. */
        return;
    }
    troupe_client_flush(map->attached.client);
}

/* ---- results ---- */

static void take_result(struct map *map, struct troupe_result *result)
{
    int r;

    if (result->error == 0 && result->attempts > 1)
        map->n_retried += result->attempts - 1;
    r = window_ended(&map->window, result, clock_now());
    if (r != 0) {
        troupe_result_release(result);
        return;
    }
    if (result->error == 0 && result->end <= TROUPE_DEAD)
        map->n_ended[result->end]++;
    else
        map->n_refused++;
    if (result->error == 0 && result->end == TROUPE_SUCCEEDED)
        return;
    if (!map->invocation->options.keep_going || result->error == -ESHUTDOWN ||
        result->error == -ENOENT)
        map->stop = true;
}

/* How long to wait for the next result. */
static usec_t patience(struct map *map)
{
    usec_t now = clock_now(), hold = usec_sub(map->window.hold, now);
    usec_t limit = GLANCE;

    if (!map->stop && window_ready(&map->window, now) && map->window.n_submitted == 0)
        return 0;
    if (!map->stop && !map->end && !window_full(&map->window))
        limit = INPUT_GLANCE;
    return hold > 0 && hold < limit ? hold : limit;
}

static void take_results(struct map *map, usec_t timeout)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r;

    while ((r = troupe_client_next(map->attached.client, &result, timeout)) == 0) {
        take_result(map, &result);
        timeout = 0;
    }
    if (r != -EAGAIN && r != -EINTR)
        map->lost = true;
}

/* ---- output ---- */

static void add_failure(struct map *map, const struct window_line *line)
{
    progress_hide(&map->progress);
    fail(map, map_failures_add(&map->failures, line));
}

/* Reports a full disk, but not that the reader has gone (EPIPE). */
static void output_failed(struct map *map)
{
    if (errno != EPIPE && !map->broken)
        complain("cannot write the results: %s", strerror(errno));
    map->broken = true;
    /* Do not try to write it again at exit. */
    __fpurge(stdout);
    clearerr(stdout);
}

static void write_lines(struct map *map)
{
    const struct window_line *line;

    while ((line = window_front(&map->window))) {
        if (map->invocation->out.is_terminal)
            progress_hide(&map->progress);
        map_output_write(&map->invocation->options, line);
        if (line->result.error < 0 || line->result.end != TROUPE_SUCCEEDED)
            add_failure(map, line);
        map->n_bytes += line->size + 1;
        window_drop(&map->window);
    }
    if (ferror(stdout))
        output_failed(map);
}

/* ---- all of it ---- */

static bool finished(const struct map *map)
{
    return map->lost || map->broken || (window_empty(&map->window) && (map->end || map->stop));
}

static void run(struct map *map)
{
    while (!finished(map)) {
        usec_t wait;

        if (interrupt_seen() && map->status != EXIT_INTERRUPTED) {
            map->status = EXIT_INTERRUPTED;
            map->stop = true;
        }
        read_lines(map);
        submit_lines(map);
        if (map->stop)
            map->n_given_up += window_give_up(&map->window);
        take_results(map, 0);
        write_lines(map);
        show_progress(map);
        wait = patience(map);
        if (window_empty(&map->window) || map->lost || wait == 0 || window_front(&map->window))
            continue;
        if (fflush(stdout) != 0)
            output_failed(map);
        else
            take_results(map, wait);
    }
    if (fflush(stdout) != 0)
        output_failed(map);
}

static void summarize(struct map *map)
{
    usec_t elapsed = clock_now() - map->started_at;
    uint64_t n = count_ended(map), rejected = map->n_ended[TROUPE_REJECTED],
             cancelled = map->n_ended[TROUPE_CANCELLED], dead = map->n_ended[TROUPE_DEAD];
    double rate = elapsed > 0 ? (double)n * (double)USEC_PER_SEC / (double)elapsed : 0;

    if (map->lost && (map->window.n_submitted > 0 || map->failures.again == 0))
        complain(
            "the connection to the supervisor was lost; what became of %zu job%s is not known, "
            "the first of them was line %" PRIu64,
            map->window.n_submitted, plural(map->window.n_submitted), map->window.first + 1);
    if (map->invocation->options.quiet || map->broken)
        return;
    fprintf(stderr, "%s job%s in %s (%s/s): %s succeeded", COUNT(n), plural(n), SPAN(elapsed),
            COUNT((uint64_t)rate), COUNT(map->n_ended[TROUPE_SUCCEEDED]));
    if (rejected > 0)
        fprintf(stderr, ", %s rejected", COUNT(rejected));
    if (cancelled > 0)
        fprintf(stderr, ", %s cancelled", COUNT(cancelled));
    if (dead > 0)
        fprintf(stderr, ", %s dead", COUNT(dead));
    if (map->n_refused > 0)
        fprintf(stderr, ", %s refused", COUNT(map->n_refused));
    fprintf(stderr, "; %s retried", COUNT(map->n_retried));
    if (map->stop)
        fputs("; stopped early", stderr);
    if (map->n_given_up > 0)
        fprintf(stderr, ", %s line%s read but not submitted", COUNT(map->n_given_up),
                plural(map->n_given_up));
    fputc('\n', stderr);
}

static bool wants_progress(const struct options *options)
{
    if (options->no_progress || options->quiet)
        return false;
    return options->progress || isatty(STDERR_FILENO) == 1;
}

static int map_attached(struct map *map)
{
    const struct options *options = &map->invocation->options;

    if (window_init(&map->window, (size_t)options->window) < 0)
        return call_no_memory();
    reader_init(&map->reader, STDIN_FILENO, options->null ? '\0' : '\n');
    map->failures.group = map->group;
    map->started_at = clock_now();
    progress_init(&map->progress, map->group, wants_progress(options), options->color,
                  map->started_at);
    interrupt_catch();
    (void)signal(SIGPIPE, SIG_IGN);
    run(map);
    progress_hide(&map->progress);
    map_failures_tell(&map->failures, map->stop || map->lost);
    summarize(map);
    if (map->lost)
        map->status = EXIT_UNREACHABLE;
    if (map->broken)
        fail(map, EXIT_FAILED);
    window_deinit(&map->window);
    reader_deinit(&map->reader);
    return map->status;
}

int verb_map(struct invocation *invocation)
{
    struct map map = {
        .invocation = invocation,
        .group = invocation_operand(invocation, 0),
        .job = attach_job_options(invocation),
    };
    int r;

    r = attach_group(invocation, map.group, &map.attached);
    if (r != EXIT_OK)
        return r;
    r = map_attached(&map);
    troupe_client_free(map.attached.client);
    return r;
}
