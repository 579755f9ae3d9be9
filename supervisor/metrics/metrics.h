/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The text that monitoring systems read, made of the replies of io.troupe.Supervisor.GetMetrics.
 * The format is Prometheus' text format 0.0.4, which all collectors read.
 */

#include <jansson.h>
#include <stddef.h>

/* The value of Content-Type. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Adds one reply of a call with "more" to those before it, in `whole`, which begins as an empty
 * object. `part` is borrowed. Returns 0 or -ENOMEM. */
int metrics_join(json_t *whole, const json_t *part);

struct metrics_text;

/* Text that is made reply by reply, so that none has to be kept: those of a call with "more", in
 * their order, or the only one. Members that are missing, or are not what the interface says, are
 * left out. */

/* NULL = out of memory. */
struct metrics_text *metrics_text_new(void);
/* NULL allowed; returns NULL. */
struct metrics_text *metrics_text_free(struct metrics_text *text);
void metrics_text_add(struct metrics_text *text, const json_t *part);
/* Returns the whole text, terminated, and its length in `*ret_size` (may be NULL); the caller frees
 * it. NULL = out of memory, also before. Called once. */
char *metrics_text_take(struct metrics_text *text, size_t *ret_size);

/* Returns the text of a whole reply, like metrics_text_take(). */
char *metrics_to_text(const json_t *reply, size_t *ret_size);
