/* SPDX-License-Identifier: MIT */
#pragma once

/* Decides by a request's headers whether it is served. Independent of sockets and of the library.
 */

#include <stdbool.h>
#include <stddef.h>

/* The secret that requests for changes contain. */

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

/* Bodies of changes are small. */
#define GUARD_BODY_MAX ((size_t)64 << 10)

struct guard {
    const char *const *hosts; /* in addition to localhost, 127.0.0.1 and [::1]; borrowed */
    size_t n_hosts;
    bool allow_changes;
    bool require_token;
    struct token token;
};

/* A request's headers; NULL = there is no such header. Borrowed. */
struct guard_request {
    bool change; /* POST */
    bool page;   /* a file of the page, which needs no token */
    unsigned n_hosts;
    unsigned n_lengths; /* number of Content-Length and Transfer-Encoding headers */
    const char *host;
    const char *origin;
    const char *fetch_site; /* Sec-Fetch-Site, which current browsers send */
    const char *content_type;
    const char *content_length;
    const char *authorization;
};

/* Returns 0 to serve it, or an HTTP status with `*ret_reason`, a sentence. */
unsigned guard_check(const struct guard *guard, const struct guard_request *request,
                     const char **ret_reason);

/* Whether it can be a host's name or an address, including "[::1]", without a port. */
bool guard_is_name(const char *text);

/* Whether browsers may use this value of the header "Host". */
bool guard_knows_host(const struct guard *guard, const char *host);
