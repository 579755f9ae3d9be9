/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The short way of a message, from its sender's ring into its recipient's inbox: copied once, to
 * where nobody else can write, and only then looked at. Whatever this way is closed to goes as a
 * message, through the router.
 */

#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor.h"

enum {
    _FAST_PATH_E_SUCCESS,
    FAST_PATH_E_CLOSED, /* no room, too large for a record, or a descriptor comes with it */
};

struct fast_path {
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
struct actor *fast_path_find_inbox(struct actor *to, uint32_t *ret_flags);

/*
 * Copies the content that `bytes` begin with, behind `head` bytes that fast_path_end_…() fills.
 * `size` = all there is, of which the content may take less: fast_path.size says how much. 0,
 * FAST_PATH_E_CLOSED, or -EBADMSG. Nothing is sent before fast_path_end_…(), and nothing is to be
 * undone without.
 */
int fast_path_begin(struct fast_path *fast_path, struct actor *to, uint32_t head, const void *bytes,
                    uint32_t size);

/* MESSAGE; `message` without its content, which is set. */
void fast_path_end_message(struct fast_path *fast_path, struct protocol_message *message);

/* REPLIED. */
void fast_path_end_reply(struct fast_path *fast_path, uint64_t cookie, uint64_t from);
