/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between endpoint*.c:
 *
 *   endpoint.c          reading, writing, sleeping
 *   endpoint-ahead.c    reading what may not wait for its turn
 *   endpoint-gate.c     what the peer has consumed, and when that may be believed
 *   endpoint-payload.c  payloads, in the record or beside it
 */

#include "supervisor/channel/endpoint.h"

/* Records per turn and source: enough to amortise the turn, few enough to be fair (tens of µs). */
#define ENDPOINT_BATCH 64

/* The peer's ring is read from this turn on; nothing sleeps on it any more. */
void endpoint_heat(struct endpoint *endpoint);

/* ---- endpoint-ahead.c ---- */

/* Whether a record just read, of that kind, was taken before its turn. */
bool endpoint_is_passed(struct endpoint *endpoint, uint16_t kind);

/* Looks at what is published behind a record that waits. Whether there was anything. */
bool endpoint_read_urgent(struct endpoint *endpoint);
/* Up to where it has looked, or where it would begin. */
uint32_t endpoint_urgent_end(const struct endpoint *endpoint);

/* Takes what speaks of our records up to the mark, and then passes ours: at the end of the turn. */
void endpoint_on_read_ahead(struct loop_deferred *deferred);

/* ---- endpoint-gate.c ---- */

/* Everything up to the mark is read: our records up to it are consumed. False if it is broken. */
bool endpoint_pass(struct endpoint *endpoint);

/* ---- endpoint.c ---- */

/*
 * The control socket takes nothing now: space() is called once it does. ENDPOINT_E_FULL, or -EPROTO
 * (broken() follows) if that cannot be waited for.
 */
int endpoint_await_socket(struct endpoint *endpoint);
