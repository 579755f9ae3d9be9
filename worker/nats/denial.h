/* SPDX-License-Identifier: MIT */
#pragma once

/* What the server forbids this user, for the log: once for each connection and kind of subject. The
 * server says so by itself, and to what was forbidden nobody answers. */

#include <pthread.h>
#include <stdbool.h>

#define DENIALS_MAX 8u

struct denials {
    pthread_mutex_t lock; /* of what follows */
    char texts[DENIALS_MAX][256];
    unsigned n, n_logged;
};

/* clang-format off */
#define DENIALS_NULL {.lock = PTHREAD_MUTEX_INITIALIZER}
/* clang-format on */

/* The connection is new. */
void denials_reset(struct denials *denials);

/* On any thread. `text` is what the server says; of a subject what stands before its first number
 * counts. Returns whether there is something new to log. */
bool denials_add(struct denials *denials, const char *text);

/* Logs what is new. */
void denials_log(struct denials *denials);
