/* SPDX-License-Identifier: MIT */
/*
 * large SOCKET GROUP SIZE: sends a payload of that size and compares the worker's sum of it, then
 * requests a result of that size and checks every byte. Prints "ok".
 */
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int there(struct troupe_client *client, uint64_t group, size_t size)
{
    static const char command[] = "sum\n\n";
    struct troupe_result result = TROUPE_RESULT_INIT;
    unsigned char *data = malloc(size);
    uint64_t hash = UINT64_C(14695981039346656037);
    char expected[64];
    int n, r;

    if (!data)
        return -ENOMEM;
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(i * 7);
    memcpy(data, command, sizeof(command) - 1);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(1099511628211);
    n = snprintf(expected, sizeof(expected), "%zu %016llx", size, (unsigned long long)hash);
    r = troupe_client_do(client, group, NULL, data, size, &result);
    free(data);
    if (r < 0)
        return r;
    r = result.end == TROUPE_SUCCEEDED && result.size == (size_t)n &&
                memcmp(result.data, expected, result.size) == 0
            ? 0
            : -EBADMSG;
    if (r < 0)
        fprintf(stderr, "sent: %s: %s\n", troupe_end_name(result.end), result.reason);
    troupe_result_release(&result);
    return r;
}

static int back(struct troupe_client *client, uint64_t group, size_t size)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    char command[64];
    int n = snprintf(command, sizeof(command), "blob %zu", size), r;

    r = troupe_client_do(client, group, NULL, command, (size_t)n, &result);
    if (r < 0)
        return r;
    if (result.end != TROUPE_SUCCEEDED || result.size != size)
        r = -EBADMSG;
    for (size_t i = 0; r == 0 && i < size; i++)
        if (((const unsigned char *)result.data)[i] != i % 251)
            r = -EBADMSG;
    if (r < 0)
        fprintf(stderr, "received: %s: %s\n", troupe_end_name(result.end), result.reason);
    troupe_result_release(&result);
    return r;
}

int main(int argc, char **argv)
{
    struct troupe_client *client = NULL;
    uint64_t group;
    int r;

    if (argc != 4)
        return 2;
    r = troupe_client_connect(&client, argv[1]);
    if (r == 0)
        r = troupe_client_group(client, argv[2], &group);
    if (r == 0)
        r = there(client, group, strtoul(argv[3], NULL, 10));
    if (r == 0)
        r = back(client, group, strtoul(argv[3], NULL, 10));
    if (r == 0)
        puts("ok");
    else
        fprintf(stderr, "%s\n", strerror(-r));
    troupe_client_free(client);
    return r != 0;
}
