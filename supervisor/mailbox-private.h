/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of a mailbox owe each other:
 *
 *   mailbox.c          reading, writing, sleeping
 *   mailbox-gate.c     what the peer has consumed, and when that may be believed
 *   mailbox-payload.c  payloads, in the record or beside it
 */

#include "mailbox.h"

/*
 * The control socket takes nothing now: space() is called once it does. MAILBOX_E_FULL, or -EPROTO
 * (broken() follows) if that cannot be waited for.
 */
int mailbox_await_socket(struct mailbox *mailbox);
