/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *path_join_n(const char *directory, size_t size, const char *name, const char *suffix)
{
    char *path = malloc(size + strlen(name) + strlen(suffix) + 2);

    if (path)
        (void)sprintf(path, "%.*s/%s%s", (int)size, directory, name, suffix);
    return path;
}

char *path_join(const char *directory, const char *name, const char *suffix)
{
    return path_join_n(directory, strlen(directory), name, suffix);
}
