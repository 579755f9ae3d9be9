/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fault_point(const char *step)
{
    const char *path = getenv("BANK_FAULT");
    char wanted[64] = "", whom[16] = "";
    FILE *file;

    if (!path || !(file = fopen(path, "re")))
        return;
    if (fscanf(file, "%63s %15s", wanted, whom) < 1)
        wanted[0] = '\0';
    (void)fclose(file);
    /* If several processes get here, only the one that removes the file dies. */
    if (strcmp(wanted, step) != 0 || unlink(path) < 0)
        return;
    (void)kill(strcmp(whom, "supervisor") == 0 ? getppid() : getpid(), SIGKILL);
    /* This process dies with the supervisor. */
    for (;;)
        pause();
}

void fault_point_of(const char *prefix, const char *step)
{
    char name[64];

    snprintf(name, sizeof(name), "%s.%s", prefix, step);
    fault_point(name);
}
