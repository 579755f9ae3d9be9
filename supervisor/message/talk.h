/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What workers and clients say to the supervisor as actors: the records of protocol-actors.h.
 *
 *   talk.c          telling, asking, replying: the way from ring to ring
 *   talk-letter.c   what becomes of the letters in hand
 *   talk-request.c  what is answered with ANSWER, FOUND or REFUSED: names, watches, timers
 *   talk-exchange.c likewise: exchanges and who subscribes to them
 */

#include "supervisor/channel/mailbox.h"
#include "supervisor/message/actor.h"

/*
 * One record of an actor's. `permitted` = it may change things. As in struct mailbox_handler; what
 * is no actor's record is -EBADMSG.
 */
int talk_on_record(struct actor *actor, const struct ring_record *record, bool permitted);
