/* SPDX-License-Identifier: MIT */
#pragma once

/* All machines as a table. */

#include "worker/nats/client.h"
#include <jansson.h>
#include <stdbool.h>

/* Prints machines, which are as in cluster.h, unless JSON is wanted. Returns whether none is dead
 * and no group is in trouble. */
bool cluster_print(const json_t *machines, const struct output *output);
