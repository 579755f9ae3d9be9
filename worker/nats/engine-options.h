/* SPDX-License-Identifier: MIT */
#pragma once

/* Converts the configuration of a connection to NATS to options of libnats. */

#include "worker/nats/config.h"
#include <nats/nats.h>
#include <stdbool.h>

/* Makes the options of any connection: servers, identity, patience. `*ret_secure`: it uses TLS. The
 * caller destroys `*ret`, which may be NULL after an error. */
natsStatus engine_options(natsOptions **ret, const struct config *config, bool *ret_secure);
