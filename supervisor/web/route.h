/* SPDX-License-Identifier: MIT */
#pragma once

/* The paths below /api, and the supervisor's method for each. No other calls are forwarded. */

#include "supervisor/web/parameter.h"
#include <jansson.h>

/* Makes the answer from a reply; returns a new reference, or NULL when out of memory. */
typedef json_t *(*route_view_fn)(json_t *reply, const json_t *local);

enum route_kind {
    ROUTE_CALL,       /* forwards a call */
    ROUTE_METRICS,    /* forwards a call, and answers with text for Prometheus */
    ROUTE_EVENTS,     /* a stream of events */
    ROUTE_JOB_EVENTS, /* the same, with those of single jobs */
    ROUTE_ITEMS,      /* a stream of what one job emits */
    ROUTE_SESSION,    /* the rights of this browser */
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

/* A new, lighter copy of one event; NULL when out of memory. */
json_t *view_event(json_t *event);
