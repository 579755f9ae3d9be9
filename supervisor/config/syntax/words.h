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
 * Splits `text` into `*ret`, owned by the caller; NULL if there are no words. In a command line,
 * ';' on its own is refused, and '\;' stands for it. Returns 0, -ENOMEM, or WORDS_E_INVALID with
 * `*ret_reason` (static).
 */
int words_split(const char *text, bool command, config_strv *ret, const char **ret_reason);

/* Returns the index of a word in a list such as "none, by-key", or -1. */
int words_find(const char *list, const char *word);

/* Returns the character after the first '%' that begins no specifier ('%' at the end), or 0. */
char words_bad_specifier(const char *word);

/* Expands specifiers. Returns 0, -ENOMEM, or -EINVAL (see above); free(3) ends `*ret`. */
int words_expand(const char *word, const char *name, unsigned slot, char **ret);
