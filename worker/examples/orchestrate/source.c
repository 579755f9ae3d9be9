/* SPDX-License-Identifier: MIT */

/*
 * The data source: a separate process, since it may fail. Reads one item a line from standard
 * input, and answers each on standard output with "data SIZE\n" and so many bytes, or with "error
 * REASON\n".
 */

#include "worker/examples/orchestrate/orchestrate.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void misbehave(const char *how)
{
    if (strcmp(how, "crash") == 0)
        raise(SIGKILL);
    while (strcmp(how, "hang") == 0)
        pause();
}

static void send_data(uint64_t size)
{
    static char chunk[1 << 16];

    memset(chunk, 'x', sizeof(chunk));
    printf("data %llu\n", (unsigned long long)size);
    while (size > 0) {
        size_t n = size < sizeof(chunk) ? (size_t)size : sizeof(chunk);

        if (fwrite(chunk, 1, n, stdout) != n)
            exit(1);
        size -= n;
    }
}

int orchestrate_source(void)
{
    char line[ORCHESTRATE_ITEM_MAX + 2], name[ORCHESTRATE_ITEM_MAX], how[16];
    unsigned long long size;

    while (fgets(line, sizeof(line), stdin)) {
        how[0] = '\0';
        if (sscanf(line, "%255s %llu %15s", name, &size, how) < 2) {
            puts("error not understood: want NAME SIZE [fail|crash|hang]");
        } else {
            misbehave(how);
            if (strcmp(how, "fail") == 0)
                printf("error there is no data for %s\n", name);
            else
                send_data(size);
        }
        if (fflush(stdout) != 0)
            return 1;
    }
    return 0;
}
