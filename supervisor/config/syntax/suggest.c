/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/suggest.h"

#include <stdint.h>
#include <string.h>

/* No locale: keys, verbs and names of groups are ASCII. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: three rows of the table are enough, the third one for swaps. */
size_t suggest_distance(const char *a, const char *b)
{
    size_t rows[3][SUGGEST_WORD_MAX + 1];
    size_t a_length = strnlen(a, SUGGEST_WORD_MAX + 1), b_length = strnlen(b, SUGGEST_WORD_MAX + 1);

    if (a_length > SUGGEST_WORD_MAX || b_length > SUGGEST_WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *twice_above = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t other = lower(a[i - 1]) != lower(b[j - 1]);

            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + other);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = smaller(row[j], twice_above[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *suggest_nearest(const char *word, const char *const *known)
{
    const char *nearest = NULL;
    size_t nearest_distance = SIZE_MAX;

    for (; *known; known++) {
        size_t longer = strlen(word) > strlen(*known) ? strlen(word) : strlen(*known);
        size_t allowed = longer < 3 ? 1 : (longer + 1) / 3;
        size_t distance = suggest_distance(word, *known);

        /* A distance of the whole word would match any two words. */
        if (distance > allowed || distance >= longer || distance >= nearest_distance)
            continue;
        nearest = *known;
        nearest_distance = distance;
    }
    return nearest;
}
