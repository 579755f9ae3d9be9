/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The text for monitoring systems, made of the replies of io.troupe.Supervisor.GetMetrics.
 * The format is Prometheus' text format 0.0.4, which all collectors read.
 */

#include <jansson.h>
#include <stddef.h>

/* The value of Content-Type. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Adds one reply of a call with "more" to the previous ones in `whole`, which begins as an empty
 * object. `part` is borrowed. Returns 0 or -ENOMEM. */
int metrics_join(json_t *whole, const json_t *part);

/* Returns the text of a whole reply, terminated, and its length in `*ret_size` (may be NULL); the
 * caller frees it. Members that are missing, or are not what the interface says, are left out.
 * NULL = out of memory. */
char *metrics_to_text(const json_t *reply, size_t *ret_size);
