/* SPDX-License-Identifier: MIT */
#pragma once

#include "supervisor/message/talk.h"

/* ---- talk.c ---- */

/*
 * A letter out of a record's content, whose payload is fetched: 0, -ENOMEM or -EMFILE (it is lost,
 * which the log says), or -EBADMSG and the like for what makes no sense.
 */
int talk_take_letter(struct actor *from, uint16_t kind, const struct protocol_content *content,
                     struct letter **ret);

/* ---- talk-letter.c ---- */

int talk_on_forward(struct actor *actor, const struct ring_record *record);
int talk_on_verdict(struct actor *actor, const struct ring_record *record);
int talk_on_stash(struct actor *actor, const struct ring_record *record);

/* ---- talk-request.c ---- */

/* As talk_on_record(). */
int talk_on_request(struct actor *actor, const struct ring_record *record, bool permitted);

/*
 * As whom an actor changes what may belong to others. NULL = it may change everything: a client
 * that is permitted to change something at all.
 */
struct actor *talk_owner(struct actor *actor);

/* REFUSED with the sentence for what a name was not taken for: an ACTOR_E_* or -errno. */
int talk_refuse_name(struct actor *actor, uint64_t cookie, int r);

/* ---- talk-exchange.c: as struct mailbox_handler's record() ---- */

int talk_on_subscription(struct actor *actor, const struct ring_record *record);
int talk_on_exchange(struct actor *actor, const struct ring_record *record);
int talk_on_exchange_delete(struct actor *actor, const struct ring_record *record);
