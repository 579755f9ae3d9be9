/* SPDX-License-Identifier: MIT */

/* The words by which rows are found. */

#include "shared/base/cleanup.h"
#include "supervisor/history/history-rows.h"
#include <ctype.h>
#include <string.h>

/* Begins words that no text can be searched for: those of the group, the submitter, the state and
 * the causes. */
#define MARK HISTORY_MARK

static void add_group(sqlite3_str *words, const char *group, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sqlite3_str_appendf(words, "%02x", (unsigned)(unsigned char)group[i]);
}

/* ---- of rows: FTS5 splits the texts ---- */

/* A text may have the mark in it. */
static void add_text(sqlite3_str *words, const char *text, size_t size)
{
    const char *const end = text + strnlen(text, size);

    for (const char *mark; text <= end; text = mark + 1) {
        mark = memchr(text, *MARK, (size_t)(end - text));
        mark = mark ? mark : end;
        sqlite3_str_appendchar(words, 1, ' ');
        sqlite3_str_append(words, text, (int)(mark - text));
    }
}

char *history_words_of_row(const struct history_row *row)
{
    sqlite3_str *words = sqlite3_str_new(NULL);

    sqlite3_str_appendf(words, MARK "s%u " MARK "c%u " MARK "f%u " MARK "u%u " MARK "g",
                        (unsigned)row->state, (unsigned)row->cause, (unsigned)row->failed_by,
                        (unsigned)row->submitter_uid);
    add_group(words, row->group, row->group_size);
    add_text(words, row->id, row->id_size);
    add_text(words, row->key, row->key_size);
    add_text(words, row->tags, row->tags_size);
    add_text(words, row->reason, row->reason_size);
    add_text(words, row->excerpt, row->excerpt_size);
    return sqlite3_str_finish(words);
}

/* ---- of searches ---- */

/* How many words of a key, a tag or an id are searched for: FTS5 takes 70 KiB for each, and their
 * columns are compared anyway. The words of the text are bounded by its size. */
#define WANTED_MAX 16
/* Groups whose contents the reader may see. With more, the index is not used. */
#define GROUPS_MAX 64

/* Like FTS5's tokenizer "ascii". */
static bool is_part_of_word(unsigned char byte)
{
    return byte >= 0x80 || isalnum(byte);
}

/* Returns the size of the next word from `*at` on, which becomes its start; 0 = there is none. */
static size_t next_word(const char **at, const char *end)
{
    const char *word_end;

    while (*at < end && !is_part_of_word((unsigned char)**at))
        ++*at;
    for (word_end = *at; word_end < end && is_part_of_word((unsigned char)*word_end);)
        word_end++;
    return (size_t)(word_end - *at);
}

static void want_words(sqlite3_str *words, const char *text, size_t size, unsigned max)
{
    const char *const end = text + size;

    for (size_t length; max > 0 && (length = next_word(&text, end)) > 0; text += length, max--)
        sqlite3_str_appendf(words, " \"%.*s\"", (int)length, text);
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

/* Leaves out the rows whose contents the reader may not see. Otherwise a page that ends at one of
 * them would tell when a job ended that has the words. Returns false for too many groups. */
static bool want_readable(sqlite3_str *words, const struct history_reader *reader)
{
    const char *group = reader->groups, *end;
    unsigned n = 0;

    sqlite3_str_appendf(words, " AND (\"" MARK "u%u\"", (unsigned)reader->uid);
    while ((end = strchr(++group, ' ')) && n++ < GROUPS_MAX) {
        sqlite3_str_appendall(words, " OR \"" MARK "g");
        add_group(words, group, (size_t)(end - group));
        sqlite3_str_appendchar(words, 1, '"');
        group = end;
    }
    sqlite3_str_appendchar(words, 1, ')');
    return !end;
}

/* Returns the longest word that is wanted of the contents or the id, which probably few rows have;
 * NULL = none, or no memory. */
static char *longest_word(const struct history_filter *filter)
{
    const char *const texts[] = {filter->id, filter->key, filter->tag, filter->text};
    const char *longest = NULL;
    size_t longest_size = 0;

    for (size_t i = 0; i < ELEMENTS(texts); i++) {
        const char *at = texts[i];
        const char *const end =
            !at ? NULL : at + (at == filter->key ? strnlen(at, filter->key_size) : strlen(at));

        for (size_t size; (size = next_word(&at, end)) > 0; at += size)
            if (size > longest_size) {
                longest = at;
                longest_size = size;
            }
    }
    return longest ? sqlite3_mprintf("\"%.*s\"", (int)longest_size, longest) : NULL;
}

char *history_words_of_call(const struct history_call *call)
{
    const struct history_filter *filter = &call->filter;
    const size_t key_size = filter->key ? strnlen(filter->key, filter->key_size) : 0;
    sqlite3_str *words;

    if (call->n_stuck > HISTORY_STUCK_MAX)
        return call->reader.all ? longest_word(filter) : NULL;
    words = sqlite3_str_new(NULL);
    want_group(words, filter->group);
    want_number(words, 's', filter->state);
    want_number(words, 'c', filter->cause);
    want_number(words, 'f', filter->failed);
    want_string(words, filter->id, WANTED_MAX);
    want_words(words, filter->key, key_size, WANTED_MAX);
    want_string(words, filter->tag, WANTED_MAX);
    want_string(words, filter->text, HISTORY_TEXT_MAX);
    if (sqlite3_str_length(words) > 0 && !call->reader.all && history_is_about_contents(filter) &&
        !want_readable(words, &call->reader))
        sqlite3_str_reset(words);
    return sqlite3_str_finish(words);
}

/* ---- without the index ---- */

static bool has_word(const char *text, size_t size, const char *word, size_t word_size)
{
    const char *const end = text + strnlen(text, size);

    for (size_t length; (length = next_word(&text, end)) > 0; text += length)
        if (length == word_size && strncasecmp(text, word, length) == 0)
            return true;
    return false;
}

bool history_row_has_words(const struct history_row *row, const char *wanted)
{
    const char *const end = wanted ? wanted + strlen(wanted) : NULL;

    for (size_t size; (size = next_word(&wanted, end)) > 0; wanted += size)
        if (!has_word(row->id, row->id_size, wanted, size) &&
            !has_word(row->key, row->key_size, wanted, size) &&
            !has_word(row->tags, row->tags_size, wanted, size) &&
            !has_word(row->reason, row->reason_size, wanted, size) &&
            !has_word(row->excerpt, row->excerpt_size, wanted, size))
            return false;
    return true;
}
