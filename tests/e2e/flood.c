/* SPDX-License-Identifier: MIT */
/*
 * flood SOCKET watch JOB N | flood SOCKET submit GROUP N SIZE: makes N requests without reading the
 * ends of jobs, and prints the counts of answers as one JSON object. After a line on standard input
 * it reads all remaining ends and prints the counts again; at the end of its input it exits.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_USEC 60000000

struct flood {
    struct troupe_client *client;
    bool watch;
    const char *target;
    uint64_t group;
    void *payload;
    size_t size;
    unsigned long asked, busy, others, ends[4];
};

static void count(struct flood *flood, struct troupe_result *result)
{
    if (result->error == -EBUSY)
        flood->busy++;
    else if (result->error < 0)
        flood->others++;
    else
        flood->ends[result->end]++;
    troupe_result_release(result);
}

/* Waits until the supervisor has handled all earlier requests. */
static int round_trip(struct flood *flood)
{
    uint64_t group;
    int r = troupe_client_group(flood->client, "nobody", &group);

    return r == -ENOENT ? 0 : r;
}

static int ask(struct flood *flood)
{
    if (flood->watch)
        return troupe_client_wait(flood->client, flood->target, flood->asked);
    return troupe_client_submit(flood->client, flood->group, NULL, flood->payload, flood->size,
                                flood->asked);
}

static int ask_all(struct flood *flood, unsigned long n)
{
    while (flood->asked < n) {
        int r = ask(flood);

        if (r == 0)
            flood->asked++;
        else if (r == -EAGAIN)
            r = round_trip(flood);
        if (r < 0)
            return r;
    }
    return round_trip(flood);
}

static int take(struct flood *flood, uint64_t timeout_usec)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_next(flood->client, &result, timeout_usec);

    if (r == 0)
        count(flood, &result);
    return r;
}

static unsigned long answered(const struct flood *flood)
{
    unsigned long n = flood->busy + flood->others;

    for (size_t i = 0; i < 4; i++)
        n += flood->ends[i];
    return n;
}

static void say(const struct flood *flood)
{
    printf(
        "{\"asked\": %lu, \"busy\": %lu, \"others\": %lu, \"succeeded\": %lu, \"rejected\": %lu, "
        "\"cancelled\": %lu, \"dead\": %lu}\n",
        flood->asked, flood->busy, flood->others, flood->ends[TROUPE_SUCCEEDED],
        flood->ends[TROUPE_REJECTED], flood->ends[TROUPE_CANCELLED], flood->ends[TROUPE_DEAD]);
    fflush(stdout);
}

static int run(struct flood *flood, unsigned long n)
{
    int r = ask_all(flood, n);

    if (r < 0)
        return r;
    while ((r = take(flood, 0)) == 0)
        ;
    say(flood);
    if (r != -EAGAIN || getchar() == EOF)
        return r == -EAGAIN ? 0 : r;
    while (answered(flood) < n) {
        r = take(flood, LIMIT_USEC);
        if (r < 0)
            return r;
    }
    say(flood);
    return 0;
}

/* "echo", an empty line, and padding up to the size. */
static void *payload(size_t size)
{
    static const char command[] = "echo\n\n";
    char *text = calloc(1, size > sizeof(command) ? size : sizeof(command));

    if (text)
        memcpy(text, command, sizeof(command) - 1);
    return text;
}

int main(int argc, char **argv)
{
    struct flood flood = {.watch = argc == 5};

    if (argc < 5 || argc > 6)
        return 2;
    flood.target = argv[3];
    int r = troupe_client_connect(&flood.client, argv[1]);
    if (r == 0 && !flood.watch) {
        flood.size = strtoul(argv[5], NULL, 10);
        flood.payload = payload(flood.size);
        r = troupe_client_group(flood.client, flood.target, &flood.group);
    }
    if (r == 0)
        r = run(&flood, strtoul(argv[4], NULL, 10));
    if (r < 0)
        fprintf(stderr, "%s\n", strerror(-r));
    free(flood.payload);
    troupe_client_free(flood.client);
    return r != 0;
}
