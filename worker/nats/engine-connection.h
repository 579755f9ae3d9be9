/* SPDX-License-Identifier: MIT */
#pragma once

/* Connects to NATS, and says why a server does not take the connection. */

#include "worker/nats/config.h"
#include <nats/nats.h>
#include <stdbool.h>

#define ENGINE_SENTENCE_SIZE 256u
#define ENGINE_SERVER_SIZE   80u

/* Makes the options of any connection: servers, identity, patience. `*ret_secure`: it uses TLS. The
 * caller destroys `*ret`, which may be NULL after an error. */
natsStatus engine_options(natsOptions **ret, const struct config *config, bool *ret_secure);

/* Tries all servers once. If one refuses the user, tries them all again: libnats 3.4 signs one of
 * about 256 challenges wrongly, and a server sends a new one each time. */
natsStatus engine_connect(natsConnection **ret, natsOptions *options);

/* Like engine_connect(), but if no server answers, lets libnats continue to try, and returns
 * NATS_NOT_YET_CONNECTED; `connected` is called when one has answered. */
natsStatus engine_connect_early(natsConnection **ret, natsOptions *options,
                                natsConnectionHandler connected, void *userdata);

/* The host and the port of the server to which it is connected; "" = unknown. */
void engine_server(natsConnection *connection, char ret[static ENGINE_SERVER_SIZE]);

/* The text of libnats' last error on this thread, which was `s`. */
const char *engine_error(natsStatus s);

/* Writes a sentence about `s`, with libnats' `text`. It contains no URL and no secret. */
void engine_explain(char sentence[static ENGINE_SENTENCE_SIZE], const struct config *config,
                    natsStatus s, const char *text);
