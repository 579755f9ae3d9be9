/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes what troupe-nats needs in JetStream. */

#include "worker/nats/config.h"

/*
 * Makes the stream of jobs, that of results, the consumer of the group, and the buckets of
 * bucket.h; leaves those alone that exist. Waits for the server. Returns 0, or -errno after it has
 * logged what failed.
 */
int setup(const struct config *config);
