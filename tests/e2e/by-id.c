/* SPDX-License-Identifier: MIT */
/*
 * by-id SOCKET cancel|withdraw|wait ID…: cancels, withdraws or awaits each job and prints, one a
 * line, the error, or the number of its end.
 * by-id SOCKET why ID…: awaits each job and prints the names of its end and its cause.
 * by-id SOCKET create GROUP ID…: creates jobs and prints the errors.
 */
#include "worker/troupe.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void wait_for(struct troupe_client *client, const char *id, bool why)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_wait(client, id, 0);

    if (r == 0)
        r = troupe_client_next(client, &result, TROUPE_USEC_INFINITY);
    if (r == 0)
        r = result.error;
    if (why && r == 0)
        printf("%s/%s\n", troupe_end_name(result.end), troupe_cause_name(result.cause));
    else
        printf("%d\n", r < 0 ? -r : (int)result.end);
    troupe_result_release(&result);
}

static int create(struct troupe_client *client, const char *group, const char *id)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    uint64_t reference;
    int r = troupe_client_group(client, group, &reference);

    options.id = id;
    printf("begins\n");
    fflush(stdout);
    return r == 0 ? troupe_client_create(client, reference, &options, "echo", 4, NULL) : r;
}

int main(int argc, char **argv)
{
    struct troupe_client *client;

    if (argc < 4 || troupe_client_connect(&client, argv[1]) < 0)
        return 2;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[2], "create") == 0) {
            if (i > 3)
                printf("%d\n", -create(client, argv[3], argv[i]));
        } else if (strcmp(argv[2], "cancel") == 0)
            printf("%d\n", -troupe_client_cancel(client, argv[i]));
        else if (strcmp(argv[2], "withdraw") == 0)
            printf("%d\n", -troupe_client_withdraw(client, argv[i]));
        else
            wait_for(client, argv[i], strcmp(argv[2], "why") == 0);
        fflush(stdout);
    }
    troupe_client_free(client);
    return 0;
}
