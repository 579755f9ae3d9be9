/* SPDX-License-Identifier: MIT */

/* Creates jobs for which nobody waits: backlog SOCKET GROUP COUNT SIZE. */

#include "worker/troupe.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, strerror(-error));
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    char id[TROUPE_ID_SIZE];
    struct troupe_client *client;
    uint64_t group, count, size;

    if (argc != 5)
        return EXIT_FAILURE;
    count = strtoull(argv[3], NULL, 10);
    size = strtoull(argv[4], NULL, 10);
    void *data = calloc(1, size + 1);
    int r = troupe_client_connect(&client, argv[1]);
    if (r == 0)
        r = troupe_client_group(client, argv[2], &group);
    if (r < 0)
        return fail(argv[1], r);
    for (uint64_t i = 0; i < count; i++) {
        r = troupe_client_create(client, group, NULL, data, size, id);
        if (r < 0)
            return fail("create", r);
    }
    printf("{\"count\": %llu}\n", (unsigned long long)count);
    troupe_client_free(client);
    free(data);
    return EXIT_SUCCESS;
}
