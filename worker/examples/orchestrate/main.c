/* SPDX-License-Identifier: MIT */

/* Runs one of the three commands of the example. */

#include "worker/examples/orchestrate/orchestrate.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char *argv[])
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "start") == 0)
        return orchestrate_start(argc - 1, argv + 1);
    if (strcmp(verb, "work") == 0)
        return orchestrate_work(argc - 1, argv + 1);
    if (strcmp(verb, "source") == 0 && argc == 2)
        return orchestrate_source();
    fputs("orchestrate start GROUP N [--size=BYTES] [--fail-every=K] [--crash-every=K]\n"
          "                           [--hang-every=K] [--impatient]\n"
          "orchestrate work [--source-timeout=MSEC] [--bell=FIFO]\n"
          "orchestrate source\n",
          stderr);
    return 2;
}
