/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/strings.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
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

/* The place of the string of the same name, or the free place for it: at least half are free. */
static uint32_t *find_place(const struct config_strings *list, const char *text)
{
    size_t i = hash_bytes(text, strcspn(text, "=")) % list->n_places;

    while (list->places[i] != 0 && !same_name(list->strings[list->places[i] - 1], text))
        i = (i + 1) % list->n_places;
    return &list->places[i];
}

static int grow_places(struct config_strings *list)
{
    const struct config_strings old = *list;

    list->n_places = 4 * (old.n + ALLOCATED_MIN);
    list->places = calloc(list->n_places, sizeof(*list->places));
    if (!list->places) {
        *list = old;
        return -ENOMEM;
    }
    free(old.places);
    for (size_t i = 0; i < list->n; i++)
        *find_place(list, list->strings[i]) = (uint32_t)i + 1;
    return 0;
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
    uint32_t *place;
    char *copy;
    int r = 2 * (list->n + 1) > list->n_places ? grow_places(list) : 0;

    if (r < 0)
        return r;
    place = find_place(list, text);
    if (*place == 0) {
        r = strings_append(list, text);
        if (r == 0)
            *place = (uint32_t)list->n;
        return r;
    }
    copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(list->strings[*place - 1]);
    list->strings[*place - 1] = copy;
    return 0;
}

bool strings_has(const struct config_strings *list, const char *text)
{
    return list->n_places > 0 && *find_place(list, text) != 0;
}

void strings_clear(struct config_strings *list)
{
    strv_free(list->strings);
    free(list->places);
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

int strv_append_file(config_strv *strings, const char *name, const char *suffix)
{
    _cleanup_free_ char *path = strings ? path_join_n("", 0, name, suffix) : NULL;

    if (!strings)
        return 0;
    return path ? strv_append(strings, path + 1) : -ENOMEM;
}
