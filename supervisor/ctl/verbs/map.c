/* SPDX-License-Identifier: MIT */

/*
 * The verb map: submits a job per line of input and writes the results in the order of the input.
 * The window (window.h) decides what is submitted and written when; this file connects it with
 * input, supervisor, output and user. The verb do is the same for a single job, whose payload is
 * given.
 */

#include "shared/base/cleanup.h"
#include "shared/base/reader.h"
#include "supervisor/ctl/call/attach.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/hint.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/map/map-output.h"
#include "supervisor/ctl/map/window.h"
#include "supervisor/ctl/show/pattern.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_GLANCE (10 * USEC_PER_MSEC)

struct map {
    struct invocation *invocation;
    const char *group;
    const char *payload; /* of do; NULL = the verb is map */
    size_t payload_size;
    struct attachment_client attached;
    struct attach_durability durability;
    struct troupe_job_options job;
    struct attach_ids ids;
    struct reconnect reconnect;
    struct hint hint;
    struct reader reader;
    struct window window;
    struct progress progress;
    struct map_failures failures;
    usec_t started_at;
    bool cancelled;                                       /* by do, after a signal */
    bool end;                                             /* of the input */
    bool stop;                                            /* stop reading and submitting */
    bool broken;                                          /* the reader of the output has gone */
    bool cut;                                             /* the connection is over */
    usec_t cut_at;                                        /* since when */
    bool lost;                                            /* the supervisor is gone */
    int status;                                           /* of the first failure */
    uint64_t n_done, n_ended[TROUPE_DEAD + 1], n_refused; /* all, by end, refused */
    uint64_t n_unknown;
    uint64_t n_retried, n_given_up;
};

static void fail(struct map *map, int status)
{
    if (map->status == EXIT_OK)
        map->status = status;
}

static void cut(struct map *map)
{
    map->cut = true;
    map->cut_at = clock_now();
}

/* ---- input ---- */

static void input_failed(struct map *map, int error)
{
    if (error == -EINTR)
        return;
    if (error == -EMSGSIZE)
        complain("line %" PRIu64 " is longer than %s", map->window.next + 1, BYTES(MAP_LINE_MAX));
    else
        complain("cannot read the input: %s", strerror(-error));
    fail(map, EXIT_FAILED);
    map->stop = true;
}

/* Waits for input only if there is nothing else to do. */
static void read_lines(struct map *map)
{
    const char *line;
    size_t size;
    int r = 0;

    if (map->payload && !map->end) {
        r = window_add(&map->window, map->payload, map->payload_size);
        map->end = true;
    }
    while (r == 0 && !map->stop && !map->end && !window_full(&map->window)) {
        r = reader_next(&map->reader, 0, &line, &size);
        if (r == READER_E_LATER && window_empty(&map->window)) {
            fflush(stdout);
            r = reader_next(&map->reader, clock_deadline(INTERRUPT_GLANCE), &line, &size);
        }
        if (r == 0)
            r = window_add(&map->window, line, size);
    }
    map->end = map->end || r == READER_E_END;
    if (r < 0)
        input_failed(map, r);
}

/* ---- submitting ---- */

/* Treats a line that cannot be sent like a refused one. */
static void refuse(struct map *map, struct window_line *line, int error)
{
    struct troupe_result result = {.cookie = line->number,
                                   .error = error,
                                   .reason = troupe_client_refusal(map->attached.client),
                                   .data = ""};

    window_submitted(&map->window, line);
    (void)window_ended(&map->window, &result, clock_now());
}

static int submit_line(struct map *map, struct window_line *line)
{
    const char *id = map->invocation->options.job.id;

    if (id)
        (void)snprintf(line->id, sizeof(line->id), "%s", id);
    else
        id = attach_ids_format(&map->ids, line->number, line->id);
    map->job.id = id;
    return troupe_client_submit(map->attached.client, map->attached.group, &map->job, line->input,
                                line->size, line->number);
}

static void submit_lines(struct map *map)
{
    usec_t now = clock_now();
    struct window_line *line;

    if (map->cut)
        return;
    while (!map->stop && (line = window_ready(&map->window, now))) {
        int r = submit_line(map, line);

        if (r == 0) {
            window_submitted(&map->window, line);
            continue;
        }
        if (r == -EPIPE)
            cut(map);
        else if (r == -EINVAL || r == -EMSGSIZE || map->window.n_submitted == 0)
            refuse(map, line, r);
        /* Other resources become available when results have been taken. */
        return;
    }
    troupe_client_flush(map->attached.client);
}

/* ---- after the connection was lost ---- */

static void give_up(struct map *map, int status)
{
    if (map->durability.durable && map->window.n_doubtful > 0)
        complain(
            "the jobs that group '%s' has accepted are on disk, and continue at the next start",
            map->group);
    map->n_unknown += map->window.n_doubtful;
    map->n_done += map->window.n_doubtful;
    window_lose(&map->window);
    map->lost = map->stop = true;
    fail(map, status);
}

/* Connects again; then the jobs in flight are waited for by their ids. Those that were accepted by
 * a durable group are known, and the others are submitted again. */
static void come_back(struct map *map)
{
    int r = window_detach(&map->window) < 0 ? call_no_memory() : EXIT_OK;

    progress_hide(&map->progress);
    if (r == EXIT_OK)
        r = attach_again(map->invocation, map->group, &map->attached, &map->reconnect);
    map->cut = r != EXIT_OK;
    if (r != EXIT_OK)
        give_up(map, interrupt_seen() ? EXIT_INTERRUPTED : r);
    /* Soon after the connection was cut, the supervisor still knows all ids: a job that it does not
     * know was never accepted. */
    map->window.repeats = usec_sub(clock_now(), map->cut_at) < map->durability.ids_known;
    map->window.hold = 0;
}

static void await_doubtful(struct map *map)
{
    struct window_line *line;

    while (!map->cut && clock_now() >= map->window.hold && (line = window_doubtful(&map->window))) {
        int r = troupe_client_wait(map->attached.client, line->id, line->number);

        if (r == -EPIPE)
            cut(map);
        if (r < 0)
            return; /* -EAGAIN: the ring has room when results have been taken */
        window_awaited(&map->window, line);
    }
}

/* ---- results ---- */

static void take_result(struct map *map, struct troupe_result *result)
{
    const struct window_line *line = &map->window.lines[result->cookie % map->window.size];
    int r;

    if (result->error == 0 && result->attempts > 1)
        map->n_retried += result->attempts - 1;
    r = window_ended(&map->window, result, clock_now());
    if (r != 0) {
        troupe_result_release(result);
        return;
    }
    map->n_done++;
    hint_put_off(&map->hint);
    if (result->error == 0 && result->end <= TROUPE_DEAD)
        map->n_ended[result->end]++;
    else if (line->result.error == -ECONNRESET)
        map->n_unknown++;
    else
        map->n_refused++;
    if (result->error == 0 && result->end == TROUPE_SUCCEEDED)
        return;
    if (!map->invocation->options.keep_going || result->error == -ESHUTDOWN ||
        result->error == -ENOENT)
        map->stop = true;
}

/* Nothing has ended for a while: the oldest job says why. */
static void give_hint(struct map *map)
{
    const struct window *window = &map->window;
    const struct window_line *oldest = &window->lines[window->first % window->size];

    if (window_empty(window))
        hint_put_off(&map->hint);
    if (oldest->state != WINDOW_SUBMITTED || !hint_due(&map->hint))
        return;
    progress_hide(&map->progress);
    hint_ask(&map->hint, oldest->id);
}

/* How long to wait for the next result. */
static usec_t patience(struct map *map)
{
    usec_t now = clock_now(), hold = usec_sub(map->window.hold, now);
    usec_t limit = INTERRUPT_GLANCE;

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

    if (map->cut)
        return;
    while ((r = troupe_client_next(map->attached.client, &result, timeout)) == 0) {
        take_result(map, &result);
        timeout = 0;
    }
    if (r != -EAGAIN && r != -EINTR)
        cut(map);
}

/* ---- output ---- */

/* Reports a full disk, but not that the reader has gone (EPIPE). */
static void output_failed(struct map *map)
{
    if (errno != EPIPE && !map->broken)
        complain("cannot write the output: %s", strerror(errno));
    map->broken = true;
    /* Do not try to write it again at exit. */
    __fpurge(stdout);
    clearerr(stdout);
}

static bool has_succeeded(const struct window_line *line)
{
    return line->result.error == 0 && line->result.end == TROUPE_SUCCEEDED;
}

/* Returns an exit status. */
static int write_line(struct map *map, const struct window_line *line)
{
    const struct options *options = &map->invocation->options;
    int r = map_output_write(options, map->group, line);

    if (r < 0) {
        complain("line %" PRIu64 ": its result cannot be written to %s: %s", line->number + 1,
                 options->output_directory, strerror(-r));
        map->stop = true;
        return EXIT_FAILED;
    }
    if (has_succeeded(line))
        return EXIT_OK;
    return options->json ? explain_status(&line->result) : map_failures_add(&map->failures, line);
}

/* Writes the end of the only job. Returns an exit status. */
static int write_end(const struct map *map, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    int r;

    if (map->invocation->options.json) {
        json_auto_t *object = explain_json(map->group, result, NULL);

        r = object ? output_json(map->invocation, object) : call_no_memory();
        return r != EXIT_OK || has_succeeded(line) ? r : explain_status(result);
    }
    if (has_succeeded(line))
        return terminal_write(&map->invocation->out, result->data, result->size) ? EXIT_OK
                                                                                 : EXIT_FAILED;
    r = explain_result("", map->group, result);
    return result->error == 0 && result->cause == TROUPE_CAUSE_DEADLINE ? EXIT_TIMEOUT : r;
}

static void write_lines(struct map *map)
{
    const struct window_line *line;

    while ((line = window_front(&map->window))) {
        if (map->invocation->out.is_terminal || !has_succeeded(line))
            progress_hide(&map->progress);
        fail(map, map->payload ? write_end(map, line) : write_line(map, line));
        window_drop(&map->window);
    }
    if (ferror(stdout))
        output_failed(map);
}

/* ---- all of it ---- */

static bool finished(const struct map *map)
{
    return map->broken || (window_empty(&map->window) && (map->end || map->stop));
}

/* Writes the ended lines before it waits for a lost connection, which may never come back. */
static bool write_until_finished(struct map *map)
{
    if (map->stop)
        map->n_given_up += window_give_up(&map->window);
    write_lines(map);
    return finished(map);
}

/* The first signal stops reading and submitting, or cancels the only job. */
static void interrupt(struct map *map)
{
    if (!map->payload) {
        map->status = EXIT_INTERRUPTED;
        map->stop = true;
    } else if (!map->cancelled && !map->cut && map->window.n_submitted > 0) {
        map->cancelled = true;
        complain("cancelling the job; a second signal exits without waiting for its end");
        (void)troupe_client_cancel(map->attached.client, map->job.id);
    }
}

static void run(struct map *map)
{
    while (!write_until_finished(map)) {
        usec_t wait;

        if (interrupt_seen())
            interrupt(map);
        if (map->cut && !map->lost)
            come_back(map);
        await_doubtful(map);
        read_lines(map);
        submit_lines(map);
        take_results(map, 0);
        give_hint(map);
        progress_update(&map->progress, map->n_done, map->n_done - map->n_ended[TROUPE_SUCCEEDED]);
        wait = patience(map);
        if (window_empty(&map->window) || map->cut || wait == 0 || window_front(&map->window))
            continue;
        if (fflush(stdout) != 0)
            output_failed(map);
        else
            take_results(map, wait);
    }
    if (fflush(stdout) != 0)
        output_failed(map);
}

static const char SUMMARY[] =
    "{done:count} job{done:s} in {elapsed:span} ({rate:count}/s): {succeeded:count} succeeded"
    "[, {rejected>0:count} rejected][, {cancelled>0:count} cancelled][, {dead>0:count} dead]"
    "[, {refused>0:count} refused][, {unknown>0:count} unknown]; {retried:count} retried"
    "[; {early}stopped early[, lines after {next:count} not read]"
    "[, {given_up>0:count} line{given_up:s} read but not submitted]]";

static void set(json_t *object, const char *name, uint64_t value)
{
    json_object_set_new(object, name, json_integer((json_int_t)value));
}

static void summarize(struct map *map)
{
    const usec_t elapsed = clock_now() - map->started_at;
    json_auto_t *numbers = json_object();
    _cleanup_free_ char *text = NULL;

    if (map->invocation->options.quiet || map->broken || map->payload)
        return;
    for (enum troupe_end end = TROUPE_SUCCEEDED; end <= TROUPE_DEAD; end++)
        set(numbers, troupe_end_name(end), map->n_ended[end]);
    set(numbers, "done", map->n_done);
    set(numbers, "elapsed", elapsed);
    set(numbers, "rate", elapsed > 0 ? map->n_done * USEC_PER_SEC / elapsed : 0);
    set(numbers, "refused", map->n_refused);
    set(numbers, "unknown", map->n_unknown);
    set(numbers, "retried", map->n_retried);
    set(numbers, "given_up", map->n_given_up);
    json_object_set_new(numbers, "early", json_boolean(map->stop));
    if (map->stop && !map->end)
        set(numbers, "next", map->window.next);
    text = pattern_text(SUMMARY, numbers, 0);
    fprintf(stderr, "%s\n", text ? text : "");
}

/* Makes the directory if it is missing. Otherwise the results would be lost after the work. */
static bool can_write_to(const char *directory)
{
    _cleanup_close_ int fd = -1;

    if (mkdir(directory, 0777) < 0 && errno != EEXIST) {
        complain("cannot make the directory %s: %s", directory, strerror(errno));
        return false;
    }
    fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, 0) < 0) {
        complain("cannot write to %s: %s", directory, strerror(errno));
        return false;
    }
    return true;
}

static int map_attached(struct map *map)
{
    const struct options *options = &map->invocation->options;

    if (options->output_directory && !can_write_to(options->output_directory))
        return EXIT_FAILED;
    if (window_init(&map->window, (size_t)options->window) < 0)
        return call_no_memory();
    map->window.durable = map->durability.durable;
    map->window.repeats = map->durability.ids_known > 0;
    map->job.keep_result = map->durability.durable;
    map->window.patient = !map->payload;
    if (map->job.wait_usec == 0 && !map->payload)
        map->job.wait_usec = USEC_INFINITY;
    map->reader = reader_make(STDIN_FILENO, options->null ? '\0' : '\n', false, MAP_LINE_MAX);
    map->failures.group = map->group;
    map->started_at = clock_now();
    progress_init(&map->progress, map->group, options->quiet || map->payload);
    interrupt_catch();
    (void)signal(SIGPIPE, SIG_IGN);
    run(map);
    progress_hide(&map->progress);
    map_failures_end(&map->failures);
    summarize(map);
    if (map->broken)
        fail(map, EXIT_FAILED);
    window_deinit(&map->window);
    reader_deinit(&map->reader);
    return map->status;
}

/* Submits a job with this payload; if `payload` is NULL, a job for each line of standard input. */
static int submit_jobs(struct invocation *invocation, const char *payload, size_t size)
{
    struct map map = {
        .invocation = invocation,
        .group = invocation_operand(invocation, 0),
        .payload = payload,
        .payload_size = size,
        .job = attach_job_options(&invocation->options),
        .ids = attach_ids_make(),
        .reconnect = reconnect_make(invocation, RECONNECT_DEFAULT),
        .hint = hint_make(invocation),
    };
    int r;

    r = attach_group(invocation, map.group, &map.attached, &map.reconnect);
    if (r != EXIT_OK)
        return r;
    r = attach_ask_durability(invocation, &map.durability);
    if (r == EXIT_OK)
        r = map_attached(&map);
    troupe_client_free(map.attached.client);
    return r;
}

int verb_map(struct invocation *invocation)
{
    return invocation->options.background ? map_in_background(invocation)
                                          : submit_jobs(invocation, NULL, 0);
}

int verb_do(struct invocation *invocation)
{
    _cleanup_free_ char *payload = NULL;
    size_t size;
    int r = invocation_payload(invocation, invocation_operand(invocation, 1), &payload, &size);

    return r == EXIT_OK ? submit_jobs(invocation, payload, size) : r;
}
