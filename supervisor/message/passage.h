/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The short way of a message, from its sender's ring into its recipient's inbox: copied once, to
 * where nobody else can write, and only then looked at. Whatever this way is closed to goes as a
 * letter, through the router.
 */

#include "shared/protocol-actors.h"
#include "supervisor/message/actor.h"

enum {
    _PASSAGE_E_SUCCESS,
    PASSAGE_E_CLOSED, /* no room, too large for a record, or a descriptor comes with it */
};

struct passage {
    struct actor *to;
    uint8_t *body;
    uint32_t head;                   /* bytes of the record before the content */
    uint32_t size;                   /* of the content */
    struct protocol_content content; /* points into the record */
};

/*
 * Into whose inbox a message for this actor can go at once; NULL = into none. `*ret_flags` are the
 * message's, enum protocol_message_flags.
 */
struct actor *passage_find_inbox(struct actor *to, uint32_t *ret_flags);

/*
 * Copies the content that `bytes` begin with, behind `head` bytes that passage_end_…() fills.
 * `size` = all there is, of which the content may take less: passage.size says how much. 0,
 * PASSAGE_E_CLOSED, or -EBADMSG. Nothing is sent before passage_end_…(), and nothing is to be
 * undone without.
 */
int passage_begin(struct passage *passage, struct actor *to, uint32_t head, const void *bytes,
                  uint32_t size);

/* MESSAGE; `message` without its content, which is set. */
void passage_end_message(struct passage *passage, struct protocol_message *message);

/* REPLIED. */
void passage_end_reply(struct passage *passage, uint64_t cookie, uint64_t from);
