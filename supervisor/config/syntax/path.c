/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/path.h"

#include <stdlib.h>
#include <string.h>

char *path_join(const char *directory, size_t directory_size, const char *name, const char *suffix)
{
    char *path = malloc(directory_size + strlen(name) + strlen(suffix) + 2);
    char *end = path;

    if (!path)
        return NULL;
    end = mempcpy(end, directory, directory_size);
    *end++ = '/';
    end = stpcpy(end, name);
    (void)stpcpy(end, suffix);
    return path;
}
