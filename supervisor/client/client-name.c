/* SPDX-License-Identifier: MIT */
#include "supervisor/client/client-name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void client_name_write(char ret[CLIENT_NAME_SIZE], uint64_t number)
{
    (void)snprintf(ret, CLIENT_NAME_SIZE, "@%" PRIu64, number);
}

bool client_name_read(const char *name, uint64_t *ret)
{
    char again[CLIENT_NAME_SIZE];

    if (name[0] != '@')
        return false;
    *ret = strtoull(name + 1, NULL, 10);
    client_name_write(again, *ret);
    return *ret > 0 && *ret <= CLIENT_NUMBER_MAX && strcmp(name, again) == 0;
}
