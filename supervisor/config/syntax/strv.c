/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/strv.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t strv_length(char *const *strings)
{
    size_t n = 0;

    while (strings && strings[n])
        n++;
    return n;
}

int strv_append(config_strv *strings, const char *text)
{
    size_t n = strv_length(*strings);
    char *copy = strdup(text);
    config_strv grown = copy ? reallocarray(*strings, n + 2, sizeof(char *)) : NULL;

    if (!grown) {
        free(copy);
        return -ENOMEM;
    }
    grown[n] = copy;
    grown[n + 1] = NULL;
    *strings = grown;
    return 0;
}

int strv_copy(config_strv *ret, char *const *strings)
{
    _cleanup_strv_ config_strv copy = NULL;

    for (size_t i = 0; strings && strings[i]; i++)
        if (strv_append(&copy, strings[i]) < 0)
            return -ENOMEM;
    *ret = TAKE_PTR(copy);
    return 0;
}

bool strv_equal(char *const *a, char *const *b)
{
    size_t n = strv_length(a);

    if (n != strv_length(b))
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(a[i], b[i]) != 0)
            return false;
    return true;
}

config_strv strv_free(config_strv strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
    return NULL;
}
