/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where machines say how they are: two key-value buckets of JetStream, whose keys are
 * MACHINE.GROUP, one for each troupe-nats. Values are JSON.
 *
 * BUCKET_STATE forgets a key after BUCKET_STATE_PERIODS times StateSec=: what it has is up.
 *
 *     {"state": "up", "version": …, "groups": [{"name": …, "type": …, "state": …, "size": …,
 *      "up": …, "queued": …, "running": …, "waiting": …, "oldest_usec": …}]}
 *     {"state": "stopped"}
 *
 * BUCKET_MACHINES forgets a key after BUCKET_MACHINES_AGE, and has {"state": "up"} or {"state":
 * "stopped"}. What is up there and unknown to the other is dead: it has not said that it stops.
 * Therefore a machine writes the other first, and a reader reads this one first.
 */

#include "shared/base/clock.h"

#define BUCKET_STATE    "TROUPE_STATE"
#define BUCKET_MACHINES "TROUPE_MACHINES"

/* As many may get lost, less one. */
#define BUCKET_STATE_PERIODS 3u
#define BUCKET_MACHINES_AGE  (USEC_PER_SEC * 7 * 24 * 3600)

/* The subject of a key, and the stream of a bucket. */
#define BUCKET_SUBJECT "$KV."
#define BUCKET_STREAM  "KV_"
