/* SPDX-License-Identifier: MIT */
/*
 * turns SOCKET GROUP: an attached client that submits a job for each line of its standard input,
 * waits for its end and prints 0 or an errno.
 */
#include "worker/troupe.h"
#include <stdio.h>
#include <string.h>

#define LIMIT_USEC 60000000

static int turn(struct troupe_client *client, uint64_t group)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_submit(client, group, NULL, "echo", 4, 0);

    if (r == 0)
        r = troupe_client_next(client, &result, LIMIT_USEC);
    if (r < 0)
        return r;
    r = result.error;
    troupe_result_release(&result);
    return r;
}

int main(int argc, char **argv)
{
    struct troupe_client *client = NULL;
    uint64_t group;
    int c, r;

    if (argc != 3)
        return 2;
    r = troupe_client_connect(&client, argv[1]);
    if (r == 0)
        r = troupe_client_group(client, argv[2], &group);
    while (r == 0 && (c = getchar()) != EOF)
        if (c == '\n') {
            printf("%d\n", -turn(client, group));
            fflush(stdout);
        }
    if (r < 0)
        fprintf(stderr, "%s\n", strerror(-r));
    troupe_client_free(client);
    return r != 0;
}
