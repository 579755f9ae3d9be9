/* SPDX-License-Identifier: MIT */
#pragma once

/* What the bank's actors say to each other: a few words of text. */

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

/* Cuts a message's payload at its blanks. 0, or -EINVAL for what is too long or has too many. */
int words_parse(struct words *ret, struct troupe_message *message);

/* 1 to 32 of [a-z0-9-]. */
bool words_name_valid(const char *name, size_t size);

/* A customer's id: 1 to 64 of [A-Za-z0-9._-]. */
bool words_id_valid(const char *id);

/* The id of a step of a transfer: a customer's, '/', and what the bank adds. No customer's id is
 * one. */
bool words_step_valid(const char *id);
