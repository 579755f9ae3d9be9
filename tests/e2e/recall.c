/* SPDX-License-Identifier: MIT */
/*
 * recall SOCKET GROUP NAME ID…: submits three jobs that wait for room without limit, the last with
 * the id NAME (unless "-"), then cancels each ID and prints the errors, one a line.
 */
#include "worker/troupe.h"
#include <stdio.h>
#include <string.h>

static int submit(struct troupe_client *client, uint64_t group, const char *name)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    int r = 0;

    options.wait_usec = TROUPE_USEC_INFINITY;
    for (uint64_t i = 0; i < 3 && r == 0; i++) {
        if (i == 2 && strcmp(name, "-") != 0)
            options.id = name;
        r = troupe_client_submit(client, group, &options, "echo", 4, i);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct troupe_client *client;
    uint64_t group;
    int r;

    if (argc < 5)
        return 2;
    r = troupe_client_connect(&client, argv[1]);
    if (r < 0)
        return 1;
    r = troupe_client_group(client, argv[2], &group);
    if (r == 0)
        r = submit(client, group, argv[3]);
    for (int i = 4; i < argc && r == 0; i++) {
        printf("%d\n", -troupe_client_cancel(client, argv[i]));
        fflush(stdout);
    }
    troupe_client_free(client);
    return r < 0;
}
