/* SPDX-License-Identifier: MIT */
/*
 * flight SOCKET GROUP WINDOW: submits a job without an id for each line of its input, with "|" for
 * a newline and up to WINDOW at a time. Each waits for room without limit. Prints "NUMBER ERROR END
 * RESULT" for each end, ERROR as the name of an errno or "-", RESULT if it is short. At a line
 * "pause" it prints "paused", and stops itself until SIGCONT.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_SIZE (1u << 20)

static char input[LINE_MAX_SIZE];
static size_t used;
static bool over;

static struct troupe_client *client;
static uint64_t group, n_submitted, n_ended, window;

static void submit(const char *line, size_t size)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    char *payload = malloc(size + 1);

    if (!payload)
        abort();
    for (size_t i = 0; i < size; i++)
        payload[i] = line[i] == '|' ? '\n' : line[i];
    options.wait_usec = TROUPE_USEC_INFINITY;
    int r = troupe_client_submit(client, group, &options, payload, size, n_submitted++);
    if (r < 0) {
        fprintf(stderr, "flight: cannot submit: %s\n", strerror(-r));
        exit(1);
    }
    free(payload);
}

static void pause_now(void)
{
    troupe_client_flush(client);
    printf("paused\n");
    fflush(stdout);
    raise(SIGSTOP);
}

/* Submits the lines that are complete, while the window has room. */
static void take_lines(void)
{
    char *end;

    while (n_submitted - n_ended < window && (end = memchr(input, '\n', used))) {
        const size_t size = (size_t)(end - input);

        if (size == 5 && memcmp(input, "pause", 5) == 0)
            pause_now();
        else
            submit(input, size);
        used -= size + 1;
        memmove(input, end + 1, used);
    }
}

static void read_input(void)
{
    const ssize_t n = read(STDIN_FILENO, input + used, sizeof(input) - used);

    if (n < 0)
        abort();
    over = n == 0;
    used += (size_t)n;
}

static void print_ends(void)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r;

    while ((r = troupe_client_next(client, &result, 0)) == 0) {
        const bool why = result.cause != TROUPE_CAUSE_NONE;

        printf("%llu %s %s%s%s %.*s\n", (unsigned long long)result.cookie,
               result.error < 0 ? strerrorname_np(-result.error) : "-", troupe_end_name(result.end),
               why ? "/" : "", why ? troupe_cause_name(result.cause) : "",
               (int)(result.size < 100 ? result.size : 0), (const char *)result.data);
        n_ended++;
        troupe_result_release(&result);
    }
    fflush(stdout);
    if (r != -EAGAIN) {
        fprintf(stderr, "flight: %s\n", strerror(-r));
        exit(1);
    }
}

/* Sleeps until there is something to do. */
static void rest(void)
{
    const bool reads = !over && used < sizeof(input) && !memchr(input, '\n', used);
    struct pollfd pollers[] = {
        {.fd = troupe_client_fd(client), .events = POLLIN},
        {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
    };
    const int r = troupe_client_process(client);

    if (r == 0 && poll(pollers, 2, -1) < 0 && errno != EINTR)
        abort();
    if (r == 0 && pollers[1].revents != 0)
        read_input();
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    window = strtoull(argv[3], NULL, 10);
    int r = troupe_client_connect(&client, argv[1]);
    if (r == 0)
        r = troupe_client_group(client, argv[2], &group);
    if (r < 0) {
        fprintf(stderr, "flight: %s\n", strerror(-r));
        return 1;
    }
    for (;;) {
        print_ends();
        /* Last, so that a line waits only if the window is full: no end comes if it is empty. */
        take_lines();
        if (over && n_ended == n_submitted)
            break;
        rest();
    }
    troupe_client_free(client);
    return 0;
}
