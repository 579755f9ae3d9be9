/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/import/import-command.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/import/import.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Whether a word needs no quotes, neither here nor in a shell. */
static bool is_plain(const char *word, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (isascii(word[i]) && !isalnum(word[i]) && !strchr("_-./:=,@%+", word[i]))
            return false;
    return true;
}

void import_quote(struct buffer *buffer, const char *word)
{
    const size_t size = strlen(word);
    const char quote = strpbrk(word, "'\n") ? '"' : '\'';
    bool plain = size > 0 && strcmp(word, ";") != 0;
    char escape[8];

    for (size_t i = 0; i < size; i++)
        plain = plain && !strchr(" '\"\\", word[i]) && !iscntrl((unsigned char)word[i]);
    if (plain) {
        buffer_add(buffer, word, size);
        return;
    }
    buffer_add_char(buffer, quote);
    for (const char *at = word; *at != '\0'; at++) {
        (void)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*at);
        if (*at == '\n')
            buffer_add_string(buffer, "\\n");
        else if (iscntrl((unsigned char)*at) && isascii(*at))
            buffer_add_string(buffer, escape);
        else if (*at == '\\' || *at == quote)
            buffer_add(buffer, (const char[]){'\\', *at}, 2);
        else
            buffer_add_char(buffer, *at);
    }
    buffer_add_char(buffer, quote);
}

/* Adds text in quotes of a shell, with each "%" doubled. */
static void quote_for_shell(struct buffer *buffer, const char *text, size_t size)
{
    const bool plain = is_plain(text, size);

    if (!plain)
        buffer_add_char(buffer, '\'');
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\'')
            buffer_add_string(buffer, "'\\''");
        else
            buffer_add(buffer, text[i] == '%' ? "%%" : &text[i], text[i] == '%' ? 2 : 1);
    if (!plain)
        buffer_add_char(buffer, '\'');
}

void import_command_text(struct import_command *command, const char *text, size_t size)
{
    command->in_word = true;
    for (size_t i = 0; i < size; i++)
        buffer_add(&command->word, text[i] == '%' ? "%%" : &text[i], text[i] == '%' ? 2 : 1);
    quote_for_shell(&command->shell_word, text, size);
}

void import_command_shell(struct import_command *command, const char *text)
{
    command->in_word = command->needs_shell = true;
    command->splits = command->splits || *text == '$';
    buffer_add_string(&command->shell_word, text);
}

void import_command_specifier(struct import_command *command, const char *specifier)
{
    command->in_word = true;
    buffer_add_string(&command->word, specifier);
    buffer_add_string(&command->shell_word, specifier);
}

void import_command_end_word(struct import_command *command)
{
    _cleanup_free_ char *word = buffer_take(&command->word, NULL),
                        *shell_word = buffer_take(&command->shell_word, NULL);

    if (!command->in_word || !word || !shell_word)
        return;
    if (command->line.size > 0) {
        buffer_add_char(&command->line, ' ');
        buffer_add_char(&command->script, ' ');
    }
    import_quote(&command->line, word);
    buffer_add_string(&command->script, *shell_word != '\0' ? shell_word : "''");
    command->in_word = false;
}

const char *import_command_take(struct import *import, struct import_command *command, bool exec)
{
    const char *line = import_take(import, &command->line);
    const char *script = import_take(import, &command->script);
    struct buffer quoted = BUFFER_NULL;

    /* Variables are split into words, but these are no patterns. */
    import_quote(&quoted, import_text(import, "%s%s%s", command->splits ? "set -f; " : "",
                                      exec ? "exec " : "", script));
    script = import_text(import, "/bin/sh -c %s", import_take(import, &quoted));
    if (command->needs_shell)
        line = script;
    buffer_deinit(&command->word);
    buffer_deinit(&command->shell_word);
    *command = (struct import_command){0};
    return line;
}

const char *import_command_of_script(struct import *import, const char *shell, const char *script)
{
    struct import_command command = {0};

    import_command_text(&command, shell, strlen(shell));
    import_command_end_word(&command);
    import_command_text(&command, "-c", 2);
    import_command_end_word(&command);
    import_command_text(&command, script, strlen(script));
    import_command_end_word(&command);
    return import_command_take(import, &command, false);
}
