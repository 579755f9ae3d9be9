/* SPDX-License-Identifier: MIT */
#pragma once

/* Metrics in a file for node_exporter's textfile collector. It is written after changes, at most
 * once a second, and at least every 30 seconds, so its age shows whether this program is running.
 */

#include "shared/base/clock.h"
#include "worker/nats/config.h"
#include <stdbool.h>
#include <stdint.h>

enum metric {
    /* gauges, set before each writing */
    METRIC_CONNECTED,
    METRIC_TAKING,
    METRIC_STALLED,
    METRIC_IN_FLIGHT,
    METRIC_UNPUBLISHED,
    /* counters */
    METRIC_MESSAGES,
    METRIC_REDELIVERED,
    METRIC_RESULTS,
    METRIC_DEAD,
    METRIC_GIVEN_BACK,
    METRIC_CONNECTIONS,
    METRIC_PUBLISH_FAILURES,
    _METRIC_N,
};

struct metrics {
    const struct config *config;
    uint64_t n[_METRIC_N];
    uint64_t written[_METRIC_N];
    usec_t written_at; /* 0 = never */
    bool failing;
};

void metrics_init(struct metrics *metrics, const struct config *config);
/* Removes the file. */
void metrics_remove(struct metrics *metrics);

/* Writes the file if it is time. Returns when to call it again at the latest. */
usec_t metrics_serve(struct metrics *metrics, usec_t now);
