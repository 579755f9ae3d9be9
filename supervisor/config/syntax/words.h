/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Splits values into words as systemd does — '…', "…", C escapes, also in the middle of a word —
 * and expands the specifiers of command lines: %n the group's name, %i the slot's number, %% a per
 * cent sign.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>

enum {
    _WORDS_E_SUCCESS,
    WORDS_E_INVALID, /* see the reason */
};

/*
 * `*ret` = the words, the caller's (strv_free()); NULL if there are none. `command`: the words are
 * a command line, in which ';' on its own is refused and '\;' stands for it. 0, -ENOMEM, or
 * WORDS_E_INVALID with `*ret_reason` (static text).
 */
int words_split(const char *text, bool command, config_strv *ret, const char **ret_reason);

/* The number of a word in a list such as "none, by-key"; -1 = it is not there. */
int words_find(const char *list, const char *word);

/* The character behind the first '%' that begins no specifier ('%' itself at the end of the word),
 * or 0. */
char words_bad_specifier(const char *word);

/* `*ret` is the caller's (free(3)). 0, -ENOMEM, or -EINVAL where words_bad_specifier() finds
 * something. */
int words_expand(const char *word, const char *name, unsigned slot, char **ret);
