/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Copies a message from its sender's ring straight into its recipient's inbox. It is copied once,
 * to memory that no other process can write, and checked there. Messages for which this is not
 * possible become envelopes and go through the router.
 */

#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor.h"

enum {
    _FAST_PATH_E_SUCCESS,
    FAST_PATH_E_CLOSED, /* no room, too large for a record, or with a descriptor */
};

struct fast_path {
    struct actor *to;
    uint8_t *body;
    uint32_t head;                   /* bytes of the record before the content */
    uint32_t size;                   /* of the content */
    struct protocol_content content; /* points into the record */
};

/* The actor into whose inbox a message for `to` can be written immediately; NULL = none.
 * `*ret_flags`: enum protocol_message_flags. */
struct actor *fast_path_find_inbox(struct actor *to, uint32_t *ret_flags);

/*
 * Copies the content at `bytes`, behind `head` bytes that fast_path_end_…() fills. The content may
 * take less than `size`: see fast_path.size. 0, FAST_PATH_E_CLOSED, or -EBADMSG. Nothing is sent
 * before fast_path_end_…(), and nothing must be undone without it.
 */
int fast_path_begin(struct fast_path *fast_path, struct actor *to, uint32_t head, const void *bytes,
                    uint32_t size);

/* Sends the content as MESSAGE; sets the content of `message`. */
void fast_path_end_message(struct fast_path *fast_path, struct protocol_message *message);

/* Sends the content as REPLIED. */
void fast_path_end_reply(struct fast_path *fast_path, uint64_t cookie, uint64_t from);
