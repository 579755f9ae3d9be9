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

void path_simplify(char *path)
{
    char *to = path;

    for (const char *at = path; *at; at++)
        if (*at != '/' || (at[1] != '/' && (at[1] || to == path)))
            *to++ = *at;
    *to = '\0';
}

bool path_has_dots(const char *path)
{
    for (; *path; path += *path == '/') {
        const size_t n = strcspn(path, "/");

        if (n > 0 && n <= 2 && strspn(path, ".") == n)
            return true;
        path += n;
    }
    return false;
}
