/* SPDX-License-Identifier: MIT */
#pragma once

/* What top knows of the supervisor. Survives the loss of the connection. */

#include "shared/base/clock.h"
#include "supervisor/caller/varlink-client.h"
#include <jansson.h>

struct top_source {
    const char *socket; /* borrowed */
    usec_t timeout;     /* of a call */
    struct varlink_client client;
    json_t *metrics;   /* the last reply of GetMetrics; NULL = none so far */
    json_t *before;    /* the one before it, of the same supervisor; NULL = none */
    usec_t at;         /* when the last one came, monotonic */
    usec_t elapsed;    /* between the two; 0 = not known */
    json_t *status;    /* groups with their cells and workers; NULL = none */
    json_t *deaths;    /* the last ones, newest first; NULL = none */
    char problem[256]; /* why the last call failed; "" = it did not */
};

void top_source_init(struct top_source *source, const char *socket, usec_t timeout);
void top_source_deinit(struct top_source *source);

/* Asks for metrics, the last deaths, and the status of the groups whose names are keys of `open`.
 * Connects if necessary. Returns 0, or -errno with `problem`: -EREMOTEIO for an error reply. What
 * did not come stays as it was. */
int top_source_refresh(struct top_source *source, const json_t *open);
