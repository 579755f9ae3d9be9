/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The text that monitoring systems read, made of the replies of io.troupe.Supervisor.GetMetrics.
 * There are two formats, which differ in the names of counters' families and in the end: Prometheus
 * and newer collectors ask for OpenMetrics; promtool and node_exporter read the older text format.
 */

#include <jansson.h>
#include <stddef.h>

enum metrics_format {
    METRICS_PROMETHEUS,  /* Prometheus' text format 0.0.4 */
    METRICS_OPENMETRICS, /* OpenMetrics 1.0.0 */
};

/* The format that an HTTP client wants, by its Accept header: OpenMetrics if the header names it,
 * otherwise the older one. NULL = no header. */
enum metrics_format metrics_negotiate(const char *accept);

/* The value of Content-Type; static. */
const char *metrics_content_type(enum metrics_format format);

/* Adds one reply of a call with "more" to those before it, in `whole`, which begins as an empty
 * object. `part` is borrowed. Returns 0 or -ENOMEM. */
int metrics_join(json_t *whole, const json_t *part);

struct metrics_text;

/* Text that is made reply by reply, so that none has to be kept: those of a call with "more", in
 * their order, or the only one. Members that are missing, or are not what the interface says, are
 * left out. */

/* NULL = out of memory. */
struct metrics_text *metrics_text_new(enum metrics_format format);
/* NULL allowed; returns NULL. */
struct metrics_text *metrics_text_free(struct metrics_text *text);
void metrics_text_add(struct metrics_text *text, const json_t *part);
/* Returns the whole text, terminated, and its length in `*ret_size` (may be NULL); the caller frees
 * it. NULL = out of memory, also before. Called once. */
char *metrics_text_take(struct metrics_text *text, size_t *ret_size);

/* Returns the text of a whole reply, like metrics_text_take(). */
char *metrics_to_text(const json_t *reply, enum metrics_format format, size_t *ret_size);
