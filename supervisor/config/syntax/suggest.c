/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/param.h>

/* More steps are not a typing mistake, however long the word is. */
#define STEPS_MAX ((size_t)3)

/* No locale: keys, verbs and names of groups are ASCII. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Fills in a row of the table, as far as the distance can be STEPS_MAX or less: STEPS_MAX places on
 * each side of the diagonal, and one with a larger number behind each end. Returns the smallest
 * number of the row. */
static size_t fill_row(size_t rows[3][SUGGEST_WORD_MAX + 2], const char *a, size_t i, const char *b,
                       size_t b_length)
{
    size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *twice_above = rows[(i + 1) % 3];
    const size_t first = i > STEPS_MAX ? i - STEPS_MAX : 1, last = MIN(i + STEPS_MAX, b_length);
    size_t smallest = row[first - 1] = MIN(i, STEPS_MAX + 1);

    for (size_t j = first; j <= last; j++) {
        size_t other = lower(a[i - 1]) != lower(b[j - 1]);

        row[j] = MIN(MIN(above[j], row[j - 1]) + 1, above[j - 1] + other);
        if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
            lower(a[i - 2]) == lower(b[j - 1]))
            row[j] = MIN(row[j], twice_above[j - 2] + 1);
        smallest = MIN(smallest, row[j]);
    }
    row[last + 1] = STEPS_MAX + 1;
    return smallest;
}

/* Optimal string alignment: three rows of the table are enough, the third one for swaps. */
size_t suggest_distance(const char *a, const char *b)
{
    size_t rows[3][SUGGEST_WORD_MAX + 2];
    size_t a_length = strnlen(a, SUGGEST_WORD_MAX + 1), b_length = strnlen(b, SUGGEST_WORD_MAX + 1);
    size_t smallest = 0;

    if (a_length > SUGGEST_WORD_MAX || b_length > SUGGEST_WORD_MAX ||
        a_length > b_length + STEPS_MAX || b_length > a_length + STEPS_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length && smallest <= STEPS_MAX; i++)
        smallest = fill_row(rows, a, i, b, b_length);
    if (smallest > STEPS_MAX || rows[a_length % 3][b_length] > STEPS_MAX)
        return SIZE_MAX;
    return rows[a_length % 3][b_length];
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Returns whether a part of the word begins at `at`, as in Start|Limit, CPU|Weight and
 * dead-|letters, or the word ends there. */
static bool starts_part(const char *word, size_t at)
{
    if (at == 0 || word[at] == '\0' || word[at - 1] == '-')
        return true;
    return is_upper(word[at]) && (!is_upper(word[at - 1]) || is_lower(word[at + 1]));
}

static size_t common_length(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] != '\0' && lower(a[n]) == lower(b[n]))
        n++;
    return n;
}

/* Returns how long the longer of the two is without the parts that both begin and end with. */
static size_t differing_length(const char *a, const char *b)
{
    const size_t a_length = strlen(a), b_length = strlen(b), shorter = MIN(a_length, b_length);
    size_t before = common_length(a, b), behind = 0;

    while (behind < shorter - before &&
           lower(a[a_length - 1 - behind]) == lower(b[b_length - 1 - behind]))
        behind++;
    while (!starts_part(a, before) || !starts_part(b, before))
        before--;
    while (!starts_part(a, a_length - behind) || !starts_part(b, b_length - behind))
        behind--;
    return a_length + b_length - shorter - before - behind;
}

/* A distance of the whole length would match any two words. */
static bool is_near(size_t distance, size_t length)
{
    return distance <= (length < 3 ? 1 : (length + 1) / 3) && distance < length;
}

/* Whether the known word was meant. Many keys have the same parts, such as Private, so the parts
 * that differ must be near each other. Or the end was left out, such as Sec. */
static bool is_meant(const char *word, const char *known, size_t distance)
{
    const size_t length = strlen(word), known_length = strlen(known);

    if (distance == SIZE_MAX)
        return false;
    if (is_near(distance, differing_length(word, known)))
        return true;
    return length + distance == known_length && is_near(distance, known_length) &&
           common_length(word, known) == length;
}

const char *suggest_nearest(const char *word, const char *const *known)
{
    const char *nearest = NULL;
    size_t nearest_distance = SIZE_MAX;

    for (; *known; known++) {
        const size_t distance = suggest_distance(word, *known);

        if (distance >= nearest_distance || (distance > 0 && !is_meant(word, *known, distance)))
            continue;
        nearest = *known;
        nearest_distance = distance;
    }
    return nearest;
}
