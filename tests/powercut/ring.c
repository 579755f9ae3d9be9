/* SPDX-License-Identifier: MIT */
/*
 * ring SOCKET GROUP: a client with rings. Each line of the standard input is the payload of a job,
 * with tabs for newlines; a few jobs are under way at a time. Each fourth one is created first, and
 * then waited for. Prints what it is told of job N, the first being 0:
 *
 *     N created ID
 *     N END ID        succeeded, rejected, cancelled or dead
 *
 * Ends with 1 when the supervisor is gone.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 16
#define LIMIT  60000000

static const char *const ENDS[] = {
    [TROUPE_SUCCEEDED] = "succeeded",
    [TROUPE_REJECTED] = "rejected",
    [TROUPE_CANCELLED] = "cancelled",
    [TROUPE_DEAD] = "dead",
};

/* Whether a job is not accepted because the store does not work. It may work again. */
static bool is_refusal(int error)
{
    return error == -EIO || error == -ENOSPC;
}

/* Returns the size of the next payload, or -1 at the end of the input. */
static ssize_t read_payload(char **payload, size_t *allocated)
{
    ssize_t size = getline(payload, allocated, stdin);

    for (ssize_t i = 0; i < size; i++)
        if ((*payload)[i] == '\t')
            (*payload)[i] = '\n';
    return size;
}

/* Returns 0, -errno, or 1 if the job was refused. */
static int begin(struct troupe_client *client, uint64_t group, uint64_t n, const char *payload,
                 size_t size)
{
    char id[TROUPE_ID_SIZE];

    if (n % 4 != 0)
        return troupe_client_submit(client, group, NULL, payload, size, n);
    int r = troupe_client_create(client, group, NULL, payload, size, id);
    if (r < 0)
        return is_refusal(r) ? 1 : r;
    printf("%llu created %s\n", (unsigned long long)n, id);
    return troupe_client_wait(client, id, n);
}

static int take_end(struct troupe_client *client)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_next(client, &result, LIMIT);

    if (r < 0)
        return r;
    r = is_refusal(result.error) ? 0 : result.error;
    if (result.error == 0)
        printf("%llu %s %s\n", (unsigned long long)result.cookie, ENDS[result.end], result.id);
    troupe_result_release(&result);
    return r;
}

static int run(struct troupe_client *client, uint64_t group)
{
    char *payload = NULL;
    size_t allocated = 0;
    uint64_t n_begun = 0, n_ended = 0;
    bool over = false;
    int r = 0;

    while (r >= 0 && (!over || n_ended < n_begun)) {
        ssize_t size = over || n_begun - n_ended == WINDOW ? 0 : read_payload(&payload, &allocated);
        over = over || size < 0;
        if (size > 0) {
            r = begin(client, group, n_begun++, payload, (size_t)size - 1);
            n_ended += r > 0;
        } else if (n_ended < n_begun) {
            r = take_end(client);
            n_ended++;
        }
    }
    free(payload);
    return r < 0 ? r : 0;
}

int main(int argc, char **argv)
{
    struct troupe_client *client = NULL;
    uint64_t group;

    if (argc != 3)
        return 2;
    setlinebuf(stdout);
    int r = troupe_client_connect(&client, argv[1]);
    if (r == 0)
        r = troupe_client_group(client, argv[2], &group);
    if (r == 0)
        r = run(client, group);
    troupe_client_free(client);
    if (r < 0)
        fprintf(stderr, "ring: %s\n", strerror(-r));
    return r < 0;
}
