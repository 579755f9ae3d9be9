/* SPDX-License-Identifier: MIT */
#pragma once

/* Sends spans to the collector in batches, one request at a time, over OTLP/HTTP with JSON. Spans
 * wait in bounded memory; those that find no room are dropped and counted. No call blocks:
 * libcurl's multi interface shares the loop, so there is no thread. */

#include "shared/base/buffer.h"
#include "supervisor/otlp/collector.h"
#include <stdbool.h>
#include <stdint.h>

#define EXPORTER_SPANS_MAX 8192u
#define EXPORTER_BYTES_MAX ((size_t)16 << 20)

struct exporter {
    const struct collector *collector;
    CURLM *multi;
    CURL *request; /* of `multi` while `n_sent` > 0 */
    char *spans[EXPORTER_SPANS_MAX];
    unsigned first, n, n_sent; /* a ring; the first n_sent are being exported */
    size_t bytes;
    struct buffer body, answer;
    size_t header_bytes;        /* of the answer */
    usec_t send_at;             /* when the next batch is due; USEC_INFINITY = there is none */
    usec_t pause;               /* grows with each failure; 0 = the last request succeeded */
    bool stopping;              /* a batch that fails is dropped */
    uint64_t n_dropped, n_told; /* since the start; n_told of these are in the log */
    usec_t told_at;
};

/* Returns 0 or -ENOMEM. The collector is borrowed. */
int exporter_init(struct exporter *exporter, const struct collector *collector);
void exporter_deinit(struct exporter *exporter);

/* Takes over a span as JSON. NULL = there was no memory for it: it counts as dropped. */
void exporter_add(struct exporter *exporter, char *span, usec_t now);
/* Counts spans that the caller has dropped. */
void exporter_drop(struct exporter *exporter, unsigned n);

/* Continues the request, or begins the next one. */
void exporter_run(struct exporter *exporter, usec_t now);
usec_t exporter_deadline(const struct exporter *exporter);
/* Sends what there is at once, and drops it if that fails. Returns whether nothing is left. */
bool exporter_stop(struct exporter *exporter);
