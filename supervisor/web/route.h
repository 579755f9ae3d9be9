/* SPDX-License-Identifier: MIT */
#pragma once

/* The paths below /api, and the supervisor's method for each. No other calls are forwarded. */

#include "supervisor/web/parameter.h"
#include <jansson.h>

/* Makes the answer from a reply; returns a new reference, or NULL when out of memory. */
typedef json_t *(*route_view_fn)(json_t *reply, const json_t *local);

enum route_kind {
    ROUTE_CALL,    /* forwards a call */
    ROUTE_METRICS, /* forwards a call, and answers with text for Prometheus */
    ROUTE_EVENTS,  /* a stream of events */
    ROUTE_SESSION, /* the rights of this browser */
};

struct route {
    const char *path;
    enum route_kind kind;
    bool change; /* POST, never shared with other browsers; all others are GET */
    const char *method;
    const struct parameter *parameters;
    route_view_fn view; /* NULL = the reply as it is */
};

/* Returns NULL if there is none. */
const struct route *route_find(const char *path);

/* ---- views ---- */

/*
 * Makes replies small enough for a browser that asks every second: thousands of workers become
 * counts, or one page of them.
 */

/*
 * For GetStatus. Each group and cell gets "workers_total" and "workers_by_state", an object of
 * counts, instead of its workers and those of its cells; each group loses its cells. With "limit"
 * in `local`, the groups keep cells and workers from "offset" on, at most "limit" of each; a group
 * with a single cell in the reply keeps that cell's workers instead. Published states and the last
 * output of dead workers are omitted, unless there is a single worker. "at" of `local` is kept.
 */
json_t *view_status(json_t *reply, const json_t *local);

/* For Watch: omits the output of dead workers, which ListDeaths has. */
json_t *view_events(json_t *reply, const json_t *local);

/* A new, lighter copy of one event; NULL when out of memory. */
json_t *view_event(json_t *event);
