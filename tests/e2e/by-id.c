/* SPDX-License-Identifier: MIT */
/*
 * by-id SOCKET cancel|wait ID…: cancels or awaits each job and prints, one a line, the error, or
 * the number of its end.
 */
#include "worker/troupe.h"
#include <stdio.h>
#include <string.h>

static void wait_for(struct troupe_client *client, const char *id)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_wait(client, id, 0);

    if (r == 0)
        r = troupe_client_next(client, &result, TROUPE_USEC_INFINITY);
    if (r == 0)
        r = result.error;
    printf("%d\n", r < 0 ? -r : (int)result.end);
    troupe_result_release(&result);
}

int main(int argc, char **argv)
{
    struct troupe_client *client;

    if (argc < 4 || troupe_client_connect(&client, argv[1]) < 0)
        return 2;
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[2], "cancel") == 0)
            printf("%d\n", -troupe_client_cancel(client, argv[i]));
        else
            wait_for(client, argv[i]);
        fflush(stdout);
    }
    troupe_client_free(client);
    return 0;
}
