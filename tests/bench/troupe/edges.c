/* SPDX-License-Identifier: MIT */

/*
 * Dependencies: edges SOCKET GROUP ROUNDS CHILDREN. Each round creates 64 jobs and CHILDREN jobs
 * that wait for all of those, and waits until all of them have ended. Prints one JSON object.
 */

#include "tests/bench/load/samples.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_PARENTS 64
#define ID_MAX    32

struct edges {
    struct troupe_client *client;
    uint64_t group, n_children;
    char after[N_PARENTS * ID_MAX];
};

static int submit(struct edges *edges, const char *id, const char *after)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;

    options.id = id;
    options.after = after;
    options.keep_result = !after; /* the end of a parent must still be known */
    return troupe_client_submit(edges->client, edges->group, &options, "x", 1, 0);
}

static int submit_round(struct edges *edges, uint64_t round)
{
    char id[ID_MAX];
    size_t n = 0;
    int r = 0;

    for (unsigned i = 0; i < N_PARENTS && r == 0; i++) {
        snprintf(id, sizeof(id), "r%llu.%u", (unsigned long long)round, i);
        n += (size_t)snprintf(edges->after + n, sizeof(edges->after) - n, "%s%s", i > 0 ? "," : "",
                              id);
        r = submit(edges, id, NULL);
    }
    for (uint64_t i = 0; i < edges->n_children && r == 0; i++)
        r = submit(edges, NULL, edges->after);
    troupe_client_flush(edges->client);
    return r;
}

static int finish_round(struct edges *edges)
{
    int r = 0;

    for (uint64_t i = 0; i < N_PARENTS + edges->n_children && r == 0; i++) {
        struct troupe_result result = TROUPE_RESULT_INIT;

        r = troupe_client_next(edges->client, &result, TROUPE_USEC_INFINITY);
        if (r == 0)
            r = result.error < 0 ? result.error : result.end == TROUPE_SUCCEEDED ? 0 : -EBADMSG;
        troupe_result_release(&result);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct edges edges = {0};

    if (argc != 5)
        return EXIT_FAILURE;
    uint64_t n_rounds = strtoull(argv[3], NULL, 10);
    edges.n_children = strtoull(argv[4], NULL, 10);
    int r = troupe_client_connect(&edges.client, argv[1]);
    if (r == 0)
        r = troupe_client_group(edges.client, argv[2], &edges.group);
    uint64_t begin = samples_now();
    for (uint64_t i = 0; i < n_rounds && r == 0; i++) {
        r = submit_round(&edges, i + begin);
        if (r == 0)
            r = finish_round(&edges);
    }
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
        return EXIT_FAILURE;
    }
    double seconds = (double)(samples_now() - begin) / 1e9;
    printf("{\"edges_per_s\": %.1f}\n",
           (double)(n_rounds * N_PARENTS * edges.n_children) / seconds);
    troupe_client_free(edges.client);
    return EXIT_SUCCESS;
}
