/* SPDX-License-Identifier: MIT */

/* The main program of troupe-otlp: options and the loop, which waits for the supervisor's socket
 * and for libcurl's in one call. */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/service-manager.h"
#include "shared/base/standard.h"
#include "supervisor/caller/end-signals.h"
#include "supervisor/otlp/event-source.h"
#include "supervisor/otlp/job-spans.h"
#include <getopt.h>
#include <stdio.h>

#define STATUS_USAGE 2
#define SOCKET       "/run/troupe/troupe.sock"
/* The longest wait: libcurl counts milliseconds as int. */
#define WAIT_MAX (3600 * USEC_PER_SEC)
/* How long the export of the remaining spans may take at the end. */
#define STOP_MAX (10 * USEC_PER_SEC)

static const char help[] =
    "troupe-otlp [OPTIONS]\n"
    "\n"
    "Exports spans of jobs with a traceparent over OTLP/HTTP with JSON.\n"
    "\n"
    "  --socket=PATH   socket of the supervisor (" SOCKET ")\n"
    "  --contents      also export texts of jobs and workers: reasons of failures\n"
    "  -h, --help      show this\n"
    "  -V, --version   show the version\n"
    "\n"
    "The collector is that of $OTEL_EXPORTER_OTLP_ENDPOINT, by default http://localhost:4318,\n"
    "with the headers of $OTEL_EXPORTER_OTLP_HEADERS; see troupe-otlp(8).\n";

struct program {
    const char *socket;
    int contents; /* set by getopt_long() */
    struct collector collector;
    struct exporter exporter;
    struct job_spans spans;
    struct event_source source;
};

static void take_event(void *userdata, const json_t *event)
{
    struct program *program = userdata;

    job_spans_take(&program->spans, event, clock_now());
}

/* Each descriptor may be -1. Returns whether `signals` is readable. */
static bool wait_for(struct program *program, int signals, int events, usec_t deadline)
{
    struct curl_waitfd fds[2] = {{.fd = signals, .events = CURL_WAIT_POLLIN},
                                 {.fd = events, .events = CURL_WAIT_POLLIN}};
    const usec_t left = deadline == USEC_INFINITY ? WAIT_MAX : clock_left(deadline);
    /* Rounded up, so that it is not too early. */
    const int msec = (int)(usec_min(left, WAIT_MAX) / USEC_PER_MSEC) + (left > 0);

    (void)curl_multi_poll(program->exporter.multi, fds, 2, msec, NULL);
    return fds[0].revents != 0;
}

static void loop(struct program *program, int signals)
{
    bool stop = false;

    while (!stop) {
        event_source_run(&program->source, clock_now());
        exporter_run(&program->exporter, clock_now());
        stop = wait_for(program, signals, event_source_fd(&program->source),
                        usec_min(event_source_deadline(&program->source),
                                 exporter_deadline(&program->exporter)));
    }
}

/* Exports what is complete, in one attempt. */
static void finish(struct program *program)
{
    const usec_t until = clock_deadline(STOP_MAX);

    while (!exporter_stop(&program->exporter) && clock_now() < until) {
        exporter_run(&program->exporter, clock_now());
        if (program->exporter.n > 0)
            (void)wait_for(program, -1, -1, until);
    }
    exporter_drop(&program->exporter, program->exporter.n);
}

static int run(struct program *program)
{
    struct service_manager manager = SERVICE_MANAGER_NULL;
    _cleanup_close_ int signals = end_signals_open();

    if (signals < 0)
        return EXIT_FAILURE;
    service_manager_connect(&manager);
    service_manager_tell(&manager, SERVICE_READY, clock_now());
    job_spans_init(&program->spans, &program->exporter, program->contents);
    event_source_init(&program->source, program->socket, take_event, program);
    log_info("exporting to %s", program->collector.name);
    loop(program, signals);
    service_manager_tell(&manager, SERVICE_STOPPING, clock_now());
    do /* take what has arrived */
        event_source_run(&program->source, clock_now());
    while (program->source.unfinished);
    event_source_deinit(&program->source);
    job_spans_deinit(&program->spans);
    finish(program);
    exporter_run(&program->exporter, clock_now());
    service_manager_close(&manager);
    return EXIT_SUCCESS;
}

/* Returns an exit status, or -1 to continue. */
static int parse(struct program *program, int argc, char *argv[])
{
    const struct option options[] = {
        {"socket", required_argument, NULL, 's'},
        {"contents", no_argument, &program->contents, true},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
        if (option == 's')
            program->socket = optarg;
        else if (option == 'h')
            return fputs(help, stdout) < 0;
        else if (option == 'V')
            return puts("troupe-otlp " TROUPE_VERSION) < 0;
        else if (option != 0)
            return STATUS_USAGE; /* getopt_long() has printed why */
    }
    if (optind == argc)
        return -1;
    fputs("troupe-otlp: takes no operands; see troupe-otlp --help\n", stderr);
    return STATUS_USAGE;
}

int main(int argc, char *argv[])
{
    static struct program program = {.socket = SOCKET};
    int r;

    (void)standard_open();
    standard_survive_file_limit();
    log_init("troupe-otlp", LOG_LEVEL_INFO);
    r = parse(&program, argc, argv);
    if (r >= 0)
        return r;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return EXIT_FAILURE;
    r = collector_init(&program.collector);
    if (r == 0)
        r = exporter_init(&program.exporter, &program.collector);
    r = r < 0 ? EXIT_FAILURE : run(&program);
    exporter_deinit(&program.exporter);
    collector_deinit(&program.collector);
    curl_global_cleanup();
    return r;
}
