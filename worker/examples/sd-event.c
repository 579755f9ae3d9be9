/* SPDX-License-Identifier: MIT */
/*
 * A client in an sd-event loop: `sd-event GROUP` makes a job of each line of standard input, and
 * writes each result when it arrives, until both have ended.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

struct lines {
    struct troupe_client *client;
    uint64_t group;
    sd_event_source *timer;
    size_t n_open; /* jobs that have not ended */
    bool over;     /* standard input has ended */
};

static int write_results(struct lines *lines)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r;

    while ((r = troupe_client_next(lines->client, &result, 0)) == 0) {
        printf("%s: %.*s\n",
               result.error < 0 ? strerror(-result.error) : troupe_end_name(result.end),
               (int)result.size, (const char *)result.data);
        troupe_result_release(&result);
        lines->n_open--;
    }
    (void)fflush(stdout);
    return r == -EAGAIN ? 0 : r;
}

/* Handles everything that has arrived, and sets the time of the next call at the latest. */
static int process(struct lines *lines, sd_event *event)
{
    int r;

    while ((r = troupe_client_process(lines->client)) > 0) {
        r = write_results(lines);
        if (r < 0)
            break;
    }
    if (r < 0)
        return sd_event_exit(event, r);
    if (lines->over && lines->n_open == 0)
        return sd_event_exit(event, 0);
    return sd_event_source_set_time(lines->timer, troupe_client_timeout(lines->client));
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    (void)fd;
    (void)events;
    return process(userdata, sd_event_source_get_event(source));
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)usec;
    return process(userdata, sd_event_source_get_event(source));
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
    struct lines *lines = userdata;
    char text[4096], *newline;
    ssize_t n = read(fd, text, sizeof(text));
    int r;

    (void)events;
    /* A pipe from a program that writes a line at a time. */
    for (char *line = text; n > 0 && (newline = memchr(line, '\n', (size_t)(text + n - line)));
         line = newline + 1) {
        r = troupe_client_submit(lines->client, lines->group, NULL, line, (size_t)(newline - line),
                                 0);
        if (r < 0)
            return r;
        lines->n_open++;
    }
    if (n <= 0) {
        lines->over = true;
        (void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
    }
    return process(lines, sd_event_source_get_event(source));
}

static int run(struct lines *lines, sd_event *event)
{
    int r;

    r = sd_event_add_time(event, &lines->timer, CLOCK_MONOTONIC, TROUPE_USEC_INFINITY, 0, on_time,
                          lines);
    if (r >= 0)
        r = sd_event_source_set_enabled(lines->timer, SD_EVENT_ON);
    if (r >= 0)
        r = sd_event_add_io(event, NULL, troupe_client_fd(lines->client), EPOLLIN, on_client,
                            lines);
    if (r >= 0)
        r = sd_event_add_io(event, NULL, STDIN_FILENO, EPOLLIN, on_input, lines);
    return r < 0 ? r : sd_event_loop(event);
}

int main(int argc, char **argv)
{
    struct lines lines = {.n_open = 0};
    sd_event *event = NULL;
    int r;

    if (argc != 2) {
        fputs("usage: sd-event GROUP\n", stderr);
        return 2;
    }
    r = sd_event_default(&event);
    if (r >= 0)
        r = troupe_client_connect(&lines.client, NULL);
    if (r >= 0)
        r = troupe_client_group(lines.client, argv[1], &lines.group);
    if (r >= 0)
        r = run(&lines, event);
    if (r < 0)
        fprintf(stderr, "sd-event: %s\n", strerror(-r));
    sd_event_source_unref(lines.timer);
    sd_event_unref(event);
    troupe_client_free(lines.client);
    return r < 0;
}
