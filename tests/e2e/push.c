/* SPDX-License-Identifier: MIT */
/*
 * push SOCKET GROUP N SIZE WAIT_USEC: creates N jobs of SIZE bytes, one after the other. Each waits
 * up to WAIT_USEC for room (-1: without limit). Prints the counts of results as one JSON object.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int push(struct troupe_client *client, uint64_t group, char **argv)
{
    const unsigned long n = strtoul(argv[3], NULL, 10), size = strtoul(argv[4], NULL, 10);
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    unsigned long accepted = 0, busy = 0, others = 0;
    char *payload = calloc(1, size + 1);

    if (!payload)
        return -ENOMEM;
    options.wait_usec = (uint64_t)strtoll(argv[5], NULL, 10);
    for (unsigned long i = 0; i < n; i++) {
        int r = troupe_client_create(client, group, &options, payload, size, NULL);

        accepted += r == 0;
        busy += r == -EBUSY;
        others += r < 0 && r != -EBUSY;
        if (r == -EPIPE)
            break;
    }
    free(payload);
    printf("{\"accepted\": %lu, \"busy\": %lu, \"others\": %lu}\n", accepted, busy, others);
    return 0;
}

int main(int argc, char **argv)
{
    struct troupe_client *client;
    uint64_t group;
    int r;

    if (argc != 6)
        return 2;
    r = troupe_client_connect(&client, argv[1]);
    if (r == 0) {
        r = troupe_client_group(client, argv[2], &group);
        if (r == 0)
            r = push(client, group, argv);
        troupe_client_free(client);
    }
    if (r < 0)
        fprintf(stderr, "push: %s\n", strerror(-r));
    return r < 0;
}
