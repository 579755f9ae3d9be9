/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/complete/usage.h"

#include <stdio.h>
#include <string.h>

#define USAGE_MAX 512

/* Without brackets: what is optional can be completed as well. */
static void without_brackets(const char *usage, char ret[USAGE_MAX])
{
    size_t n = 0;

    for (; *usage != '\0' && n < USAGE_MAX - 1; usage++)
        if (*usage != '[' && *usage != ']')
            ret[n++] = *usage;
    ret[n] = '\0';
}

/* The next word at `*at`, which is advanced; NULL at the end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " ");

    if (*word == '\0')
        return NULL;
    *at = word + strcspn(word, " ");
    if (**at == ' ')
        *(*at)++ = '\0';
    return word;
}

/* Finds a position in one alternative, up to "|" or the end. `*ret_applies`: its options are given.
 */
static const char *find(char **at, size_t position, usage_given_fn given, void *userdata,
                        bool *ret_applies)
{
    const char *found = NULL, *word;
    size_t i = 0;

    *ret_applies = true;
    while ((word = next_word(at)) && strcmp(word, "|") != 0) {
        const char *dots = strstr(word, "...");

        if (word[0] == '-' && word[1] == '-') {
            *ret_applies = *ret_applies && given(word, userdata);
            continue;
        }
        if (i == position || (dots && i < position))
            found = word;
        i++;
    }
    return found;
}

bool usage_at(const char *usage, size_t position, usage_given_fn given, void *userdata,
              char ret[USAGE_WORD_MAX])
{
    char buffer[USAGE_MAX], *at = buffer;
    bool applies, any = false;

    without_brackets(usage, buffer);
    while (*at != '\0') {
        const bool flagged = strncmp(at + strspn(at, " "), "--", 2) == 0;
        const char *found = find(&at, position, given, userdata, &applies);

        /* One without options gives way to one whose options are given. */
        if (!found || !applies || (any && !flagged))
            continue;
        snprintf(ret, USAGE_WORD_MAX, "%.*s", (int)(strcspn(found, ".")), found);
        any = true;
    }
    return any;
}
