/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/strings.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOCATED_MIN 8

static bool same_name(const char *a, const char *b)
{
    const size_t size = strcspn(a, "=");

    return size == strcspn(b, "=") && memcmp(a, b, size) == 0;
}

/* Returns the string of the same name, or NULL. */
static char **find(const struct config_strings *list, const char *text)
{
    for (size_t i = 0; i < list->n; i++)
        if (same_name(list->strings[i], text))
            return &list->strings[i];
    return NULL;
}

int strings_append(struct config_strings *list, const char *text)
{
    if (list->n == list->n_allocated) {
        const size_t wanted = list->n_allocated ? 2 * list->n_allocated : ALLOCATED_MIN;
        config_strv grown = reallocarray(list->strings, wanted + 1, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        list->strings = grown;
        list->n_allocated = wanted;
    }
    list->strings[list->n] = strdup(text);
    if (!list->strings[list->n])
        return -ENOMEM;
    list->strings[++list->n] = NULL;
    return 0;
}

int strings_set(struct config_strings *list, const char *text)
{
    char **place = find(list, text), *copy;

    if (!place)
        return strings_append(list, text);
    copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*place);
    *place = copy;
    return 0;
}

bool strings_has(const struct config_strings *list, const char *text)
{
    return find(list, text);
}

void strings_clear(struct config_strings *list)
{
    strv_free(list->strings);
    *list = (struct config_strings){0};
}

/* ---- vectors ---- */

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

/* ---- paths ---- */

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
