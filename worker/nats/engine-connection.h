/* SPDX-License-Identifier: MIT */
#pragma once

/* Connects to NATS, and says why a server does not take the connection. */

#include "worker/nats/config.h"
#include <nats/nats.h>
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
