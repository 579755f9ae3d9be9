/* SPDX-License-Identifier: MIT */

/* Command lines for ExecStart=, which may need a shell. */

#include "supervisor/ctl/import/import.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *import_quote(struct import *import, const char *word)
{
    struct buffer buffer = BUFFER_NULL;
    const char quote = strpbrk(word, "'\n") ? '"' : '\'';
    bool plain = *word != '\0';
    char escape[8];

    for (const char *at = word; *at != '\0'; at++)
        plain = plain && !strchr(" '\"\\", *at) && !iscntrl((unsigned char)*at);
    if (plain)
        return word;
    buffer_add_char(&buffer, quote);
    for (const char *at = word; *at != '\0'; at++) {
        (void)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*at);
        if (*at == '\n')
            buffer_add_string(&buffer, "\\n");
        else if (iscntrl((unsigned char)*at) && isascii(*at))
            buffer_add_string(&buffer, escape);
        else if (*at == '\\' || *at == quote)
            buffer_add(&buffer, (const char[]){'\\', *at}, 2);
        else
            buffer_add_char(&buffer, *at);
    }
    buffer_add_char(&buffer, quote);
    return import_take(import, &buffer);
}

void import_script_word(struct import_script *script)
{
    if (script->text.size > 0)
        buffer_add_char(&script->text, ' ');
}

/* Whether a word needs no quotes. */
static bool is_plain(const char *word, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (isascii(word[i]) && !isalnum(word[i]) && !strchr("_-./:=,@%+", word[i]))
            return false;
    return size > 0;
}

void import_script_text(struct import_script *script, const char *text, size_t size)
{
    const char *quote = is_plain(text, size) ? "" : "'";

    buffer_add_string(&script->text, quote);
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\'')
            buffer_add_string(&script->text, "'\\''");
        else
            buffer_add(&script->text, text[i] == '%' ? "%%" : &text[i], text[i] == '%' ? 2 : 1);
    buffer_add_string(&script->text, quote);
}

void import_script_shell(struct import_script *script, const char *text)
{
    script->needs_shell = true;
    script->splits = script->splits || *text == '$';
    buffer_add_string(&script->text, text);
}

/* Whether ExecStart= reads the text as a shell does. */
static bool is_same_here(const char *text)
{
    while (*text != '\0' && *text != '\\' && !iscntrl((unsigned char)*text))
        text++;
    return *text == '\0';
}

const char *import_script_take(struct import *import, struct import_script *script, bool exec)
{
    const char *text = import_take(import, &script->text);

    /* Variables are split into words, but these are no patterns. */
    if (script->needs_shell || !is_same_here(text))
        text = import_text(
            import, "/bin/sh -c %s",
            import_quote(import, import_text(import, "%s%s%s", script->splits ? "set -f; " : "",
                                             exec ? "exec " : "", text)));
    *script = (struct import_script){0};
    return text;
}
