/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/strv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t strv_length(const char *const *strings)
{
    size_t n = 0;

    while (strings && strings[n])
        n++;
    return n;
}

/* Makes room for `n_more` strings and the NULL behind them. */
static int strv_grow(config_strv *strings, size_t n, size_t n_more)
{
    config_strv grown = realloc(*strings, (n + n_more + 1) * sizeof(char *));

    if (!grown)
        return -ENOMEM;
    grown[n] = NULL;
    *strings = grown;
    return 0;
}

int strv_append(config_strv *strings, const char *text)
{
    size_t n = strv_length((const char *const *)*strings);
    char *copy = strdup(text);

    if (!copy)
        return -ENOMEM;
    if (strv_grow(strings, n, 1) < 0) {
        free(copy);
        return -ENOMEM;
    }
    (*strings)[n] = copy;
    (*strings)[n + 1] = NULL;
    return 0;
}

bool strv_equal(const char *const *a, const char *const *b)
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
