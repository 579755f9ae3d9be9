/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Connections of browsers, and the time that each has for its next step. The library only counts
 * the time without any byte, so a few bytes from time to time would keep a connection open forever.
 */

#include "shared/base/list.h"
#include "supervisor/web/poller.h"
#include <microhttpd.h>

/* The next step of a connection. */
enum visitor_step {
    VISITOR_HEADERS, /* from connecting to the end of the headers */
    VISITOR_ANSWER,  /* from there to the end of the answer */
    VISITOR_IDLE,    /* from there to the end of the next headers */
    VISITOR_STREAM,  /* takes any time */
    VISITOR_CLOSING, /* as long as the library takes */
};

/* How many may have a step with a limit. A newer one takes the place of the one that has been idle
 * for longest, or if none is, of the one that has taken longest for its step, so that idle
 * connections do not keep others out. With the streams, they are fewer than one address may have.
 */
#define VISITORS_MAX 32

struct visitors {
    struct list busy, idle; /* with a limit; the one that has taken longest comes first */
    struct list others;     /* streams, and those that are being closed */
    size_t n_waiting;       /* busy or idle */
};

void visitors_init(struct visitors *visitors);

/* For MHD_OPTION_NOTIFY_CONNECTION; `userdata` is the struct visitors. */
void visitors_notify(void *userdata, struct MHD_Connection *connection, void **context,
                     enum MHD_ConnectionNotificationCode code);

/* The connection begins this step; its time counts from now. */
void visitor_begin(struct MHD_Connection *connection, enum visitor_step step);

/* Closes the connection, at any step. */
void visitor_end(struct MHD_Connection *connection);

/* Call before and after the loop waits; the latter closes connections whose time is over. */
void visitors_prepare(const struct visitors *visitors, struct poller *poller);
void visitors_run(struct visitors *visitors, usec_t now);
