/* SPDX-License-Identifier: MIT */

/*
 * Jobs with their whole life cycle through a running supervisor:
 *
 *     jobs SOCKET GROUP round-trip|window COUNT BYTES [WINDOW]
 *
 * One line of JSON; times in microseconds. round-trip: one at a time; window: so many in flight.
 */

#include "../../shared/clock.h"
#include "../../worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct troupe_client *client;
    uint64_t group;
    uint64_t count, window;
    size_t size;
    char *data;
    uint64_t n_wrong;
};

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void check(struct bench *bench, struct troupe_result *result)
{
    if (result->error != 0 || result->end != TROUPE_SUCCEEDED || result->size != bench->size)
        bench->n_wrong++;
    troupe_result_release(result);
}

static double now_usec(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int round_trip(struct bench *bench)
{
    double *samples = calloc(bench->count, sizeof(*samples));
    int r = samples ? 0 : -ENOMEM;

    for (uint64_t i = 0; r == 0 && i < bench->count; i++) {
        struct troupe_result result;
        double begin = now_usec();
        r = troupe_client_do(bench->client, bench->group, NULL, bench->data, bench->size, &result);
        samples[i] = now_usec() - begin;
        if (r == 0)
            check(bench, &result);
    }
    if (r == 0) {
        qsort(samples, bench->count, sizeof(*samples), compare);
        printf("{\"name\": \"jobs round-trip\", \"bytes\": %zu, \"count\": %llu, \"p50_us\": %.2f, "
               "\"p99_us\": %.2f, \"p999_us\": %.2f, \"wrong\": %llu}\n",
               bench->size, (unsigned long long)bench->count, samples[bench->count / 2],
               samples[bench->count * 99 / 100], samples[bench->count * 999 / 1000],
               (unsigned long long)bench->n_wrong);
    }
    free(samples);
    return r;
}

/* As many as the window allows. */
static int submit(struct bench *bench, uint64_t *submitted, uint64_t ended)
{
    while (*submitted < bench->count && *submitted - ended < bench->window) {
        int r = troupe_client_submit(bench->client, bench->group, NULL, bench->data, bench->size,
                                     *submitted);
        if (r == -EAGAIN)
            return 0;
        if (r < 0)
            return r;
        (*submitted)++;
    }
    return 0;
}

static int window(struct bench *bench)
{
    double begin = now_usec();
    uint64_t submitted = 0, ended = 0;
    int r = 0;

    while (r == 0 && ended < bench->count) {
        struct troupe_result result;
        r = submit(bench, &submitted, ended);
        if (r == 0)
            r = troupe_client_next(bench->client, &result, 30 * USEC_PER_SEC);
        for (; r == 0; r = troupe_client_next(bench->client, &result, 0)) {
            check(bench, &result);
            ended++;
        }
        if (r == -EAGAIN && ended > 0)
            r = 0;
    }
    if (r == 0)
        printf("{\"name\": \"jobs window\", \"bytes\": %zu, \"count\": %llu, \"window\": %llu, "
               "\"jobs_per_s\": %.0f, \"wrong\": %llu}\n",
               bench->size, (unsigned long long)bench->count, (unsigned long long)bench->window,
               (double)bench->count / ((now_usec() - begin) / 1e6),
               (unsigned long long)bench->n_wrong);
    return r;
}

int main(int argc, char **argv)
{
    struct bench bench = {.window = 1};
    int r;

    if (argc < 6)
        return 2;
    bench.count = strtoull(argv[4], NULL, 10);
    bench.size = strtoull(argv[5], NULL, 10);
    bench.window = argc > 6 ? strtoull(argv[6], NULL, 10) : 1;
    bench.data = calloc(1, bench.size + 1);
    if (!bench.data)
        return 1;
    r = troupe_client_connect(&bench.client, argv[1]);
    if (r == 0)
        r = troupe_client_group(bench.client, argv[2], &bench.group);
    if (r == 0)
        r = strcmp(argv[3], "window") == 0 ? window(&bench) : round_trip(&bench);
    if (r < 0)
        fprintf(stderr, "jobs: %s\n", strerror(-r));
    troupe_client_free(bench.client);
    free(bench.data);
    return r < 0 || bench.n_wrong > 0;
}
