/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/complete/candidates.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 512

static bool is_printable(const char *word)
{
    for (; *word != '\0'; word++)
        if ((unsigned char)*word < ' ' || *word == 0x7f)
            return false;
    return true;
}

void candidates_add(struct candidates *candidates, const char *word, const char *about)
{
    if (candidates_full(candidates) || *word == '\0' || !is_printable(word) ||
        strncmp(word, candidates->typed, strlen(candidates->typed)) != 0)
        return;
    candidates->n++;
    printf("%s%s\t%s\n", candidates->before, word, about ? about : "");
}

void candidates_add_words(struct candidates *candidates, const char *words)
{
    while (*words != '\0') {
        const size_t length = strcspn(words, " ");
        char word[WORD_MAX];

        snprintf(word, sizeof(word), "%.*s", (int)length, words);
        candidates_add(candidates, word, NULL);
        words += length;
        words += strspn(words, " ");
    }
}

void candidates_add_files(struct candidates *candidates)
{
    (void)candidates;
    puts("\tfiles");
}

bool candidates_full(const struct candidates *candidates)
{
    return candidates->n >= CANDIDATES_MAX;
}
