/* SPDX-License-Identifier: MIT */
/*
 * keep SOCKET GROUP ID SCRIPT [keep|leave]: submits a job and prints the error, or the number of
 * its end. "keep": its result is kept as well. "leave": the same, but the program ends once the job
 * is submitted.
 */
#include "worker/troupe.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    struct troupe_result result = TROUPE_RESULT_INIT;
    struct troupe_client *client;
    uint64_t group;
    int r;

    if (argc < 5 || troupe_client_connect(&client, argv[1]) < 0 ||
        troupe_client_group(client, argv[2], &group) < 0)
        return 2;
    options.id = argv[3];
    options.keep_result = argc > 5;
    r = troupe_client_submit(client, group, &options, argv[4], strlen(argv[4]), 0);
    if (r == 0 && argc > 5 && strcmp(argv[5], "leave") == 0) {
        /* The answer to this shows that the supervisor has read the submission. */
        r = troupe_client_group(client, argv[2], &group);
        _exit(r < 0); /* without a farewell */
    }
    if (r == 0)
        r = troupe_client_next(client, &result, TROUPE_USEC_INFINITY);
    if (r == 0)
        r = result.error;
    printf("%d\n", r < 0 ? -r : (int)result.end);
    troupe_result_release(&result);
    troupe_client_free(client);
    return 0;
}
