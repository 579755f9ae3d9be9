/* SPDX-License-Identifier: MIT */
#pragma once

/* Connects to NATS, says why a server does not take the connection, and what it forbids then. */

#include "worker/nats/config.h"
#include <nats/nats.h>
#include <pthread.h>
#include <stdbool.h>

#define ENGINE_SENTENCE_SIZE 256u

/* Makes the options of any connection: servers, identity, patience. `*ret_secure`: it uses TLS. The
 * caller destroys `*ret`, which may be NULL after an error. */
natsStatus engine_options(natsOptions **ret, const struct config *config, bool *ret_secure);

/* Tries all servers once. If one refuses the user, tries them once more: libnats 3.4 signs one of
 * some 256 challenges wrongly, and the server sends another each time. */
natsStatus engine_connect(natsConnection **ret, natsOptions *options);

/* Like engine_connect(), but if no server answers, lets libnats continue to try, and returns
 * NATS_NOT_YET_CONNECTED; `connected` is called when one has answered. */
natsStatus engine_connect_early(natsConnection **ret, natsOptions *options,
                                natsConnectionHandler connected, void *userdata);

/* What libnats said last on this thread, when it returned `s`. */
const char *engine_error(natsStatus s);

/* Writes a sentence for `s`, of which libnats says `text`. It has no URL and no secret. */
void engine_explain(char sentence[static ENGINE_SENTENCE_SIZE], const struct config *config,
                    natsStatus s, const char *text);

/* ---- permissions ---- */

/* What the server forbids this user, for the log: once for each connection and kind of subject. The
 * server says so by itself, and to what was forbidden nobody answers. */

#define FORBIDDEN_MAX 8u

struct forbidden {
    pthread_mutex_t lock; /* of what follows */
    char texts[FORBIDDEN_MAX][256];
    unsigned n, n_logged;
};

/* clang-format off */
#define FORBIDDEN_NULL {.lock = PTHREAD_MUTEX_INITIALIZER}
/* clang-format on */

/* The connection is new. */
void forbidden_reset(struct forbidden *forbidden);

/* On any thread. `text` is what the server says; of a subject what stands before its first number
 * counts. Returns whether there is something new to log. */
bool forbidden_add(struct forbidden *forbidden, const char *text);

/* Logs what is new. */
void forbidden_log(struct forbidden *forbidden);
