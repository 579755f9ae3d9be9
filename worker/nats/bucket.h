/* SPDX-License-Identifier: MIT */
#pragma once

/* A key-value bucket of JetStream for the states of machines. Keys are MACHINE.GROUP, one for each
 * troupe-nats. Values are JSON:
 *
 *     {"state": "up", "every_usec": …, "version": …, "groups": [{"name": …, "type": …, "state": …,
 *      "size": …, "up": …, "queued": …, "running": …, "waiting": …, "oldest_usec": …}]}
 *     {"state": "stopped"}
 *
 * An "up" that is older than BUCKET_PERIODS times every_usec is dead. The bucket forgets a key
 * after BUCKET_AGE. */

#include "shared/base/clock.h"

#define BUCKET_NAME "TROUPE_STATE"

/* One report fewer may get lost. */
#define BUCKET_PERIODS 3u
#define BUCKET_AGE     (USEC_PER_SEC * 7 * 24 * 3600)

/* The subject of a key, and the stream of a bucket. */
#define BUCKET_SUBJECT "$KV." BUCKET_NAME "."
#define BUCKET_STREAM  "KV_" BUCKET_NAME
