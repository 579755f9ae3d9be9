/* SPDX-License-Identifier: MIT */
#pragma once

/* The messages of the bank's actors: a few words of text. */

#include "worker/troupe.h"
#include <stdbool.h>

#define WORDS_MAX  4
#define WORDS_TEXT 320
#define WORDS_NAME 33 /* bytes of an account's name, with its NUL */
#define WORDS_ID   65 /* bytes of an id chosen by a customer, with its NUL */

struct words {
    char text[WORDS_TEXT];
    char *word[WORDS_MAX];
    int count;
};

/* Splits a message's payload at blanks. 0, or -EINVAL if a word is too long or there are too many.
 */
int words_parse(struct words *ret, struct troupe_message *message);

/* 1 to 32 of [a-z0-9-]. */
bool words_name_valid(const char *name, size_t size);

/* A customer's id: 1 to 64 of [A-Za-z0-9._-]. */
bool words_id_valid(const char *id);

/* The id of a step of a transfer: the customer's, '/', and a suffix. No customer's id has this
 * form. */
bool words_step_valid(const char *id);
