/* SPDX-License-Identifier: MIT */
#include "supervisor/config/syntax/words.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/config/syntax/strings.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPACE " \t\r\n\v\f"

struct splitter {
    const char *at;
    char *word; /* the one being put together; long enough for the whole text */
    size_t size;
    bool command;
    const char *reason;
};

static bool is_space(char c)
{
    return c != '\0' && strchr(SPACE, c);
}

static int invalid(struct splitter *splitter, const char *reason)
{
    splitter->reason = reason;
    return WORDS_E_INVALID;
}

/* `n` digits of `base` at `at`; -1 if there are fewer. */
static int64_t digits(const char *at, unsigned n, unsigned base)
{
    int64_t value = 0;

    for (unsigned i = 0; i < n; i++) {
        const char *all = "0123456789abcdef";
        const char *found =
            at[i] ? strchr(all, at[i] >= 'A' && at[i] <= 'F' ? at[i] + 32 : at[i]) : NULL;

        if (!found || found - all >= base)
            return -1;
        value = value * base + (found - all);
    }
    return value;
}

/* \xHH and \OOO are bytes, \uHHHH and \UHHHHHHHH characters. `at` is behind the backslash. */
static int take_numeric_escape(struct splitter *splitter)
{
    const char *at = splitter->at;
    bool octal = *at >= '0' && *at <= '7';
    unsigned n = octal ? 3 : *at == 'x' ? 2 : *at == 'u' ? 4 : 8;
    int64_t code = digits(octal ? at : at + 1, n, octal ? 8 : 16);

    if (code < 0)
        return invalid(splitter, "an escape \\xHH, \\OOO, \\uHHHH or \\UHHHHHHHH lacks digits");
    if (code == 0)
        return invalid(splitter, "a NUL character cannot be passed on");
    if (code > 0x10ffff || (n <= 3 && code > 0xff))
        return invalid(splitter, "an escape names no character");
    splitter->at += octal ? n : n + 1;
    if (n <= 3)
        splitter->word[splitter->size++] = (char)code;
    else
        splitter->size += utf8_put(splitter->word + splitter->size, (uint32_t)code);
    return 0;
}

/* `at` is behind the backslash. */
static int take_escape(struct splitter *splitter)
{
    static const char NAMES[] = "abfnrtvs\\\"'", CHARACTERS[] = "\a\b\f\n\r\t\v \\\"'";
    char c = *splitter->at;
    const char *found = c ? strchr(NAMES, c) : NULL;

    if (c == '\0')
        return invalid(splitter, "a backslash at the end escapes nothing");
    if (found) {
        splitter->word[splitter->size++] = CHARACTERS[found - NAMES];
        splitter->at++;
        return 0;
    }
    if (c == ';' && splitter->command) {
        splitter->word[splitter->size++] = c;
        splitter->at++;
        return 0;
    }
    if (c == 'x' || c == 'u' || c == 'U' || (c >= '0' && c <= '7'))
        return take_numeric_escape(splitter);
    return invalid(splitter, "an unknown escape; a backslash itself is written \\\\");
}

/* Up to white space that is not quoted. */
static int take_word(struct splitter *splitter)
{
    char quote = '\0';
    int r = 0;

    splitter->size = 0;
    while (r == 0 && *splitter->at != '\0' && (quote || !is_space(*splitter->at))) {
        char c = *splitter->at++;

        if (c == '\\')
            r = take_escape(splitter);
        else if (quote ? c == quote : c == '\'' || c == '"')
            quote = quote ? '\0' : c;
        else
            splitter->word[splitter->size++] = c;
    }
    if (r == 0 && quote)
        return invalid(splitter, "a quote is not closed");
    return r;
}

static int take_words(struct splitter *splitter, struct config_strings *words)
{
    int r = 0;

    while (r == 0) {
        splitter->at += strspn(splitter->at, SPACE);
        if (*splitter->at == '\0')
            return 0;
        if (words->n == STRINGS_MAX)
            return invalid(splitter, "more than 4096 words");
        if (splitter->command && splitter->at[0] == ';' &&
            (splitter->at[1] == '\0' || is_space(splitter->at[1])))
            return invalid(splitter, "';' would begin a second command, but there is only one "
                                     "(as an argument it is written '\\;')");
        r = take_word(splitter);
        if (r == 0 && !utf8_is_text(splitter->word, splitter->size))
            r = invalid(splitter, "an escape makes the word invalid UTF-8");
        splitter->word[splitter->size] = '\0';
        if (r == 0)
            r = strings_append(words, splitter->word);
    }
    return r;
}

int words_split(const char *text, bool command, config_strv *ret, const char **ret_reason)
{
    /* Unescaped text is never longer than the escaped one. */
    _cleanup_free_ char *word = malloc(strlen(text) + 1);
    _cleanup_strings_ struct config_strings words = {0};
    struct splitter splitter = {.at = text, .word = word, .command = command};
    int r;

    if (!word)
        return -ENOMEM;
    r = take_words(&splitter, &words);
    if (r == WORDS_E_INVALID)
        *ret_reason = splitter.reason;
    if (r == 0)
        *ret = TAKE_PTR(words.strings);
    return r;
}

int words_find(const char *list, const char *word)
{
    for (int n = 0; *list; n++) {
        size_t size = strcspn(list, ",");

        if (size == strlen(word) && memcmp(list, word, size) == 0)
            return n;
        list += size + strspn(list + size, ", ");
    }
    return -1;
}

char words_bad_specifier(const char *word)
{
    for (; *word; word++)
        if (*word == '%') {
            word++;
            if (*word == '\0')
                return '%';
            if (!strchr("ni%", *word))
                return *word;
        }
    return '\0';
}

int words_expand(const char *word, const char *name, unsigned slot, char **ret)
{
    char *expanded, *to;
    size_t n_specifiers = 0;

    if (words_bad_specifier(word))
        return -EINVAL;
    for (const char *at = word; *at; at++)
        n_specifiers += *at == '%';
    /* Room for name and number in place of each specifier. */
    expanded = malloc(strlen(word) + n_specifiers * (strlen(name) + 10) + 1);
    if (!expanded)
        return -ENOMEM;
    to = expanded;
    for (; *word; word++) {
        if (*word != '%' || *++word == '%')
            *to++ = *word;
        else if (*word == 'n')
            to = stpcpy(to, name);
        else
            to += sprintf(to, "%u", slot);
    }
    *to = '\0';
    *ret = expanded;
    return 0;
}
