/* SPDX-License-Identifier: MIT */
#pragma once

/* Two key-value buckets of JetStream for the states of machines. Keys are MACHINE.GROUP, one for
 * each troupe-nats. Values are JSON. BUCKET_STATE forgets a key after BUCKET_STATE_PERIODS times
 * StateSec=.
 *
 *     {"state": "up", "version": …, "groups": [{"name": …, "type": …, "state": …, "size": …,
 *      "up": …, "queued": …, "running": …, "waiting": …, "oldest_usec": …}]}
 *     {"state": "stopped"}
 *
 * BUCKET_MACHINES forgets a key after BUCKET_MACHINES_AGE, and has {"state": "up"} or {"state":
 * "stopped"}. A key that is up there and missing in BUCKET_STATE is dead. Therefore, a machine
 * writes BUCKET_STATE first, and a reader reads BUCKET_MACHINES first.
 */

#include "shared/base/clock.h"

#define BUCKET_STATE    "TROUPE_STATE"
#define BUCKET_MACHINES "TROUPE_MACHINES"

/* One report fewer may get lost. */
#define BUCKET_STATE_PERIODS 3u
#define BUCKET_MACHINES_AGE  (USEC_PER_SEC * 7 * 24 * 3600)

/* The subject of a key, and the stream of a bucket. */
#define BUCKET_SUBJECT "$KV."
#define BUCKET_STREAM  "KV_"
