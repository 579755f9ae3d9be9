/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Connections of browsers, and the time that each has for its next step. The library only counts
 * the time without any byte, so that one byte now and then would keep a connection for good.
 */

#include "shared/base/list.h"
#include "supervisor/web/poller.h"
#include <microhttpd.h>

#define VISITOR_HEADERS (10 * USEC_PER_SEC) /* from connecting to the end of the headers */
#define VISITOR_ANSWER  (30 * USEC_PER_SEC) /* from there to the end of the answer */
#define VISITOR_IDLE    (30 * USEC_PER_SEC) /* from there to the end of the next headers */

/* How many may have a next step to do. A newer one takes the place of the one that has taken
 * longest for its step, so that those who do nothing keep nobody out. With the streams, they are
 * fewer than one address may have. */
#define VISITORS_MAX 32

struct visitors {
    struct list waiting; /* for their next step, the one that has waited longest first */
    struct list others;  /* streams, and those that are being closed */
    size_t n_waiting;
};

void visitors_init(struct visitors *visitors);

/* For MHD_OPTION_NOTIFY_CONNECTION; `userdata` is the struct visitors. */
void visitors_notify(void *userdata, struct MHD_Connection *connection, void **context,
                     enum MHD_ConnectionNotificationCode code);

/* The next step of this connection takes until then at most. USEC_INFINITY: it is a stream. */
void visitor_give(struct MHD_Connection *connection, usec_t deadline);

/* Closes the connection, whatever it does. */
void visitor_end(struct MHD_Connection *connection);

/* Before and after the loop waits; the latter closes those whose time is over. */
void visitors_prepare(const struct visitors *visitors, struct poller *poller);
void visitors_run(struct visitors *visitors, usec_t now);
