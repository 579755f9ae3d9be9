/* SPDX-License-Identifier: MIT */
/*
 * chaos SOCKET GROUP JOBS WINDOW: keeps WINDOW jobs in flight until JOBS have been accepted; if
 * JOBS is 0, until standard input ends. Job n has the payload n as text and the id "chaos-n".
 * Counts the ends and prints the counts as one JSON object. Exits with 1 when an end came twice,
 * for a job that was not accepted, or with a wrong result.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct counts {
    uint64_t accepted, refused, ends[4], retried, doubled, wrong;
};

/* seen[n]: job n has ended. Grows as needed. */
static unsigned char *seen;
static uint64_t n_seen;

static void grow(uint64_t n)
{
    if (n < n_seen)
        return;
    seen = realloc(seen, n + 100000);
    if (!seen)
        abort();
    memset(seen + n_seen, 0, n + 100000 - n_seen);
    n_seen = n + 100000;
}

static void count_end(struct counts *counts, const struct troupe_result *result)
{
    char expected[64];

    if (result->cookie >= n_seen || result->cookie > counts->accepted || seen[result->cookie]) {
        counts->doubled++;
        return;
    }
    seen[result->cookie] = 1;
    if (result->error < 0) {
        fprintf(stderr, "refused: %s %s\n", strerror(-result->error), result->reason);
        counts->refused++;
        return;
    }
    counts->ends[result->end]++;
    counts->retried += result->attempts > 1;
    size_t size =
        (size_t)snprintf(expected, sizeof(expected), "%llu", (unsigned long long)result->cookie);
    if (result->end == TROUPE_SUCCEEDED &&
        (result->size != size || memcmp(result->data, expected, size) != 0))
        counts->wrong++;
}

static bool input_ended(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;

    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static int submit(struct troupe_client *client, uint64_t group, uint64_t n)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    char name[64], payload[64];
    int size = snprintf(payload, sizeof(payload), "echo %llu", (unsigned long long)n);

    snprintf(name, sizeof(name), "chaos-%llu", (unsigned long long)n);
    options.id = name;
    return troupe_client_submit(client, group, &options, payload, (size_t)size, n);
}

static int run(struct troupe_client *client, uint64_t group, uint64_t jobs, uint64_t window,
               struct counts *counts)
{
    uint64_t in_flight = 0;
    bool over = false;

    for (;;) {
        struct troupe_result result = TROUPE_RESULT_INIT;
        int r = 0;

        over = over || (jobs ? counts->accepted >= jobs : input_ended());
        while (!over && in_flight < window && (!jobs || counts->accepted < jobs)) {
            grow(counts->accepted + 1);
            r = submit(client, group, counts->accepted + 1);
            if (r < 0)
                break;
            counts->accepted++;
            in_flight++;
        }
        if (r < 0 && r != -EAGAIN)
            return r;
        if (over && in_flight == 0)
            return 0;
        r = troupe_client_next(client, &result, 60000000);
        if (r < 0)
            return r;
        in_flight--;
        count_end(counts, &result);
        troupe_result_release(&result);
    }
}

int main(int argc, char **argv)
{
    struct troupe_client *client = NULL;
    struct counts counts = {0};
    uint64_t group;

    if (argc != 5)
        return 2;
    int r = troupe_client_connect(&client, argv[1]);
    if (r == 0)
        r = troupe_client_group(client, argv[2], &group);
    if (r == 0)
        r = run(client, group, strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), &counts);
    troupe_client_free(client);
    printf("{\"error\": \"%s\", \"accepted\": %llu, \"refused\": %llu, \"succeeded\": %llu, "
           "\"rejected\": %llu, \"cancelled\": %llu, \"dead\": %llu, \"retried\": %llu, "
           "\"doubled\": %llu, \"wrong\": %llu}\n",
           r < 0 ? strerror(-r) : "", (unsigned long long)counts.accepted,
           (unsigned long long)counts.refused, (unsigned long long)counts.ends[TROUPE_SUCCEEDED],
           (unsigned long long)counts.ends[TROUPE_REJECTED],
           (unsigned long long)counts.ends[TROUPE_CANCELLED],
           (unsigned long long)counts.ends[TROUPE_DEAD], (unsigned long long)counts.retried,
           (unsigned long long)counts.doubled, (unsigned long long)counts.wrong);
    return r < 0 || counts.doubled || counts.wrong;
}
