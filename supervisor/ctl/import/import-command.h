/* SPDX-License-Identifier: MIT */
#pragma once

/* Puts a command line together for ExecStart=: without a shell if it has no text for one. */

#include "shared/base/buffer.h"
#include <stdbool.h>
#include <stddef.h>

struct import;

/* Zeroed = empty. The lines are the same in the syntax of ExecStart= and in that of a shell. */
struct import_command {
    struct buffer line, script; /* of the words so far */
    struct buffer word, shell_word;
    bool in_word;
    bool needs_shell, splits; /* whether it has text for a shell, and variables that are words */
};

/* Add to a word: text as it is; what only a shell expands; a specifier of ExecStart=, as "%i". */
void import_command_text(struct import_command *command, const char *text, size_t size);
void import_command_shell(struct import_command *command, const char *text);
void import_command_specifier(struct import_command *command, const char *specifier);
/* Ends the word, which may be empty if something was added. */
void import_command_end_word(struct import_command *command);

/* The whole, which belongs to the import; the command is empty then. With `exec`, the shell is
 * replaced by the program. */
const char *import_command_take(struct import *import, struct import_command *command, bool exec);

/* A shell that runs a script, which may contain anything. */
const char *import_command_of_script(struct import *import, const char *shell, const char *script);

/* Adds a word, with quotes and escapes if it needs them. */
void import_quote(struct buffer *buffer, const char *word);
