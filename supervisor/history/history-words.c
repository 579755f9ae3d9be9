/* SPDX-License-Identifier: MIT */

/* The words by which rows are found. */

#include "supervisor/history/history-rows.h"
#include <ctype.h>
#include <string.h>

/* Begins words that no text can be searched for: those of the group, the state and the causes. */
#define MARK HISTORY_MARK

static void add_group(sqlite3_str *words, const char *group, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sqlite3_str_appendf(words, "%02x", (unsigned)(unsigned char)group[i]);
}

/* ---- of rows: FTS5 splits the texts ---- */

static void add_text(sqlite3_str *words, const char *text, size_t size)
{
    sqlite3_str_appendchar(words, 1, ' ');
    sqlite3_str_append(words, text, (int)strnlen(text, size));
}

char *history_words_of_row(const struct history_row *row)
{
    sqlite3_str *words = sqlite3_str_new(NULL);

    sqlite3_str_appendf(words, MARK "s%u " MARK "c%u " MARK "f%u " MARK "g", (unsigned)row->state,
                        (unsigned)row->cause, (unsigned)row->failed_by);
    add_group(words, row->group, row->group_size);
    add_text(words, row->id, row->id_size);
    add_text(words, row->key, row->key_size);
    add_text(words, row->tags, row->tags_size);
    add_text(words, row->reason, row->reason_size);
    add_text(words, row->excerpt, row->excerpt_size);
    return sqlite3_str_finish(words);
}

/* ---- of searches ---- */

/* Words that are wanted of a key, a tag or an id, whose columns are compared anyway; those of the
 * text to search for are bounded by its size. FTS5 takes 70 KiB for each. */
#define WANTED_MAX 16

/* As for FTS5's tokenizer "ascii". */
static bool is_part_of_word(unsigned char byte)
{
    return byte >= 0x80 || isalnum(byte);
}

static void want_words(sqlite3_str *words, const char *text, size_t size, unsigned max)
{
    for (size_t at = 0, end; at < size && max > 0; at = end + 1) {
        for (end = at; end < size && is_part_of_word((unsigned char)text[end]);)
            end++;
        if (end == at)
            continue;
        sqlite3_str_appendf(words, " \"%.*s\"", (int)(end - at), text + at);
        max--;
    }
}

static void want_string(sqlite3_str *words, const char *text, unsigned max)
{
    if (text)
        want_words(words, text, strlen(text), max);
}

static void want_number(sqlite3_str *words, char kind, int number)
{
    if (number >= 0)
        sqlite3_str_appendf(words, " \"" MARK "%c%d\"", kind, number);
}

static void want_group(sqlite3_str *words, const char *group)
{
    if (!group)
        return;
    sqlite3_str_appendall(words, " \"" MARK "g");
    add_group(words, group, strlen(group));
    sqlite3_str_appendchar(words, 1, '"');
}

char *history_words_of_filter(const struct history_filter *filter)
{
    const size_t key_size = filter->key ? strnlen(filter->key, filter->key_size) : 0;
    sqlite3_str *words = sqlite3_str_new(NULL);

    want_group(words, filter->group);
    want_number(words, 's', filter->state);
    want_number(words, 'c', filter->cause);
    want_number(words, 'f', filter->failed);
    want_string(words, filter->id, WANTED_MAX);
    want_words(words, filter->key, key_size, WANTED_MAX);
    want_string(words, filter->tag, WANTED_MAX);
    want_string(words, filter->text, HISTORY_TEXT_MAX);
    return sqlite3_str_finish(words);
}
