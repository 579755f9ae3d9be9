/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between feed*.c. */

#include "supervisor/web/feed.h"

/* A browser that has gone without a word is noticed at the next one. */
#define FEED_HEARTBEAT (15 * USEC_PER_SEC)

/* Keeps a piece of the streams, takes ownership of it (NULL = it is lost), and wakes those that
 * wait. */
void feed_add(struct feed *feed, char *piece);
void feed_drop_pieces(struct feed *feed);

/* Looks which browsers are gone. */
void feed_prepare_streams(struct feed *feed, struct poller *poller);
void feed_run_streams(struct feed *feed, const struct poller *poller);
