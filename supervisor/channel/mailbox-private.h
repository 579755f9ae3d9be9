/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shared by the parts of a mailbox:
 *
 *   mailbox.c          reading, writing, sleeping
 *   mailbox-ahead.c    reading what may not wait for its turn
 *   mailbox-gate.c     what the peer has consumed, and when that may be believed
 *   mailbox-payload.c  payloads, in the record or beside it
 */

#include "supervisor/channel/mailbox.h"

/* Records per turn and source: enough to amortise the turn, few enough to be fair (tens of µs). */
#define MAILBOX_BATCH 64

/* The peer's ring is read from this turn on; nothing sleeps on it any more. */
void mailbox_heat(struct mailbox *mailbox);

/* ---- mailbox-ahead.c ---- */

/* Whether a record just read, of that kind, was taken before its turn. */
bool mailbox_is_passed(struct mailbox *mailbox, uint16_t kind);

/* Looks at what is published behind a record that waits. Whether there was anything. */
bool mailbox_read_urgent(struct mailbox *mailbox);
/* Up to where it has looked, or where it would begin. */
uint32_t mailbox_urgent_end(const struct mailbox *mailbox);

/* Takes what speaks of our records up to the mark, and then passes ours: at the end of the turn. */
void mailbox_on_read_ahead(struct loop_deferred *deferred);

/* ---- mailbox-gate.c ---- */

/* Everything up to the mark is read: our records up to it are consumed. False if it is broken. */
bool mailbox_pass(struct mailbox *mailbox);

/* ---- mailbox.c ---- */

/*
 * The control socket takes nothing now: space() is called once it does. MAILBOX_E_FULL, or -EPROTO
 * (broken() follows) if that cannot be waited for.
 */
int mailbox_await_socket(struct mailbox *mailbox);
