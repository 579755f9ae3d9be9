/* SPDX-License-Identifier: MIT */
#pragma once

/* The secret that those who may change something send along. */

#include <stdbool.h>
#include <stddef.h>

#define TOKEN_SIZE_MIN 16
#define TOKEN_SIZE_MAX 256

struct token {
    size_t size; /* 0 = none */
    char text[TOKEN_SIZE_MAX + 1];
};

/*
 * Reads the first line of a file. Returns 0; -EPERM if others may read or write it; -EINVAL if it
 * is not a regular file, or the line has not 16 to 256 printable characters without blanks; or
 * -errno.
 */
int token_read(struct token *ret, const char *path);

/*
 * Whether this value of the header "Authorization" is "Bearer" and the token. The time that it
 * takes does not depend on where they differ. False if there is no token.
 */
bool token_matches(const struct token *token, const char *authorization);
