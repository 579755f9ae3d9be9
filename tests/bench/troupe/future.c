/* SPDX-License-Identifier: MIT */

/*
 * Jobs for later: future SOCKET GROUP FAR NEAR. Creates FAR jobs that are due in an hour, then
 * submits NEAR jobs that are due within two seconds, each at another time, and prints as one JSON
 * object how late after its time each of those had ended.
 */

#include "tests/bench/load/samples.h"
#include "worker/client/client.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREATED_AT_ONCE 1000
#define HOUR_USEC       UINT64_C(3600000000)
#define SECOND_USEC     UINT64_C(1000000)

struct future {
    struct troupe_client *client;
    uint64_t group, *due_ns;
};

/* Takes an answer of create_far(). */
static int take_created(struct future *future)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_next(future->client, &result, TROUPE_USEC_INFINITY);

    if (r == 0)
        r = result.error;
    troupe_result_release(&result);
    return r;
}

static int create_far(struct future *future, uint64_t n)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    const struct request_job job = {
        .group = future->group, .options = &options, .data = "x", .size = 1};
    uint64_t number;
    int r = 0;

    options.delay_usec = HOUR_USEC;
    for (uint64_t i = 0; i < n + CREATED_AT_ONCE && r == 0; i++) {
        if (i >= CREATED_AT_ONCE)
            r = take_created(future);
        if (r == 0 && i < n)
            r = request_submit(future->client, &job, &number);
        if (i % 100 == 0)
            troupe_client_flush(future->client);
    }
    return r;
}

/* 7919 is prime, so jobs that are submitted one after the other are not due one after the other. */
static int submit_near(struct future *future, uint64_t n)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    int r = 0;

    for (uint64_t i = 0; i < n && r == 0; i++) {
        options.delay_usec = SECOND_USEC + i * 7919 % n * SECOND_USEC / n;
        future->due_ns[i] = samples_now() + options.delay_usec * 1000;
        r = troupe_client_submit(future->client, future->group, &options, "x", 1, i);
        troupe_client_flush(future->client);
    }
    return r;
}

static int wait_near(struct future *future, uint64_t n, struct samples *late)
{
    int r = 0;

    for (uint64_t i = 0; i < n && r == 0; i++) {
        struct troupe_result result = TROUPE_RESULT_INIT;

        r = troupe_client_next(future->client, &result, TROUPE_USEC_INFINITY);
        if (r == 0)
            r = result.error < 0 ? result.error : result.end == TROUPE_SUCCEEDED ? 0 : -EBADMSG;
        if (r == 0)
            samples_add(late, future->due_ns[result.cookie], samples_now());
        troupe_result_release(&result);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct future future = {0};
    struct samples late;

    if (argc != 5)
        return EXIT_FAILURE;
    uint64_t n_far = strtoull(argv[3], NULL, 10), n_near = strtoull(argv[4], NULL, 10);
    future.due_ns = calloc(n_near + 1, sizeof(*future.due_ns));
    if (!future.due_ns || samples_init(&late, n_near) < 0)
        return EXIT_FAILURE;
    int r = troupe_client_connect(&future.client, argv[1]);
    if (r == 0)
        r = troupe_client_group(future.client, argv[2], &future.group);
    if (r == 0)
        r = create_far(&future, n_far);
    if (r == 0)
        r = submit_near(&future, n_near);
    if (r == 0)
        r = wait_near(&future, n_near, &late);
    if (r < 0) {
        fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
        return EXIT_FAILURE;
    }
    printf("{");
    samples_print(&late, "late_");
    printf("}\n");
    samples_deinit(&late);
    free(future.due_ns);
    troupe_client_free(future.client);
    return EXIT_SUCCESS;
}
