/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between endpoint.c (reading, writing, sleeping), endpoint-ahead.c (the peer's
 * consumption, and reading before the turn), endpoint-payload.c, endpoint-stock.c (making
 * channels), and endpoint-adopt.c (taking over a peer of the former supervisor). */

#include "supervisor/channel/endpoint.h"
#include "supervisor/channel/held-blob.h"

/* Records per turn and source: enough to amortise the turn, few enough to be fair (tens of µs). */
#define ENDPOINT_BATCH 64

/* The taker's owner for what the peer sends. */
static inline uint64_t endpoint_owner(const struct endpoint *endpoint)
{
    return endpoint->blobs ? endpoint->blobs->owner : 0;
}

/* Polls the peer's ring from this turn on instead of sleeping on it. */
void endpoint_heat(struct endpoint *endpoint);

/* ---- endpoint-ahead.c ---- */

/* Returns whether the record just read, of this kind, was already handled when it was read
 * ahead. */
bool endpoint_is_passed(struct endpoint *endpoint, uint16_t kind);

/* Looks at the records behind one that waits. Returns whether there were any. */
bool endpoint_read_urgent(struct endpoint *endpoint);
/* The position at which endpoint_read_urgent() continues. */
uint32_t endpoint_urgent_end(const struct endpoint *endpoint);

/* Reads the reports about our records up to the mark, then counts the records as consumed. */
void endpoint_on_read_ahead(struct loop_deferred *deferred);
void endpoint_on_announcement(struct task *task);

/* ---- endpoint-stock.c ---- */

/* Takes what the stock has for these options, or makes it. Returns 0 or -errno; the caller owns the
 * descriptors and the channel. */
int endpoint_stock_take(const struct loop *loop, const struct endpoint_options *options,
                        struct endpoint_stock *ret);

/* ---- endpoint-adopt.c ---- */

/* Returns whether the next inbox waits for room in the control socket: no blob may overtake it. */
static inline bool endpoint_hands_over(const struct endpoint *endpoint)
{
    return endpoint->hand_over_watch.id != 0;
}

/* Prepares to receive the descriptor with this serial. Returns 0, or -ECONNRESET if the former
 * supervisor had received it. */
int endpoint_find_blob(struct endpoint *endpoint, uint64_t serial);

/* ---- endpoint.c ---- */

/* Takes over a channel and our end of its control socket. */
void endpoint_set_up(struct endpoint *endpoint, struct loop *loop,
                     const struct endpoint_handler *handler, const struct channel *channel,
                     int control, struct blob_share *blobs);

/* Waits for room in the control socket; then space() is called. Returns ENDPOINT_E_FULL, or -EPROTO
 * (broken() follows) when out of memory. */
int endpoint_await_socket(struct endpoint *endpoint);
