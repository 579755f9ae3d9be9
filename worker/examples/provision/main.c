/* SPDX-License-Identifier: MIT */

/* Runs one of the commands of the example. */

#include "worker/examples/provision/provision.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char *argv[])
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (strcmp(verb, "submit") == 0)
        return provision_submit(argc - 1, argv + 1);
    if (strcmp(verb, "work") == 0)
        return provision_work(argc - 1, argv + 1);
    if (strcmp(verb, "provider") == 0)
        return provision_provider(argc - 1, argv + 1);
    fputs("provision submit [--by=customer|product|both] GROUP\n"
          "provision work [--journal=FILE] [--patience=MSEC]\n"
          "provision provider [--journal=FILE] [--desk=FIFO]\n",
          stderr);
    return 2;
}
