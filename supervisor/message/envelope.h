/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A message while the supervisor holds it. Most messages never become an envelope: they go from
 * ring to ring. `kind` is the record's kind: PROTOCOL_MESSAGE, or that of an answer, such as
 * PROTOCOL_REPLIED, PROTOCOL_TERMINATED or PROTOCOL_DONE.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/channel/payload.h"
#include <stdbool.h>
#include <stdint.h>

/* The list of a mailbox that it is in. */
enum envelope_place {
    ENVELOPE_NOWHERE,
    ENVELOPE_WAITS,
    ENVELOPE_ANSWERS,
    ENVELOPE_STASHED,
};

struct envelope {
    struct list link;         /* in the one list that owns it */
    struct index_entry by_id; /* in the stash */
    enum envelope_place place;
    uint16_t kind;
    uint64_t id;     /* counts all messages, and orders them */
    uint64_t sender; /* reference; 0 = none. REPLIED: of the replier */
    uint64_t to;     /* reference of a recipient that is gone */
    uint64_t ask;    /* handle; 0 = tell */
    uint64_t timer;  /* id; 0 = none */
    uint64_t cookie; /* REPLIED: the asker's own number */
    usec_t sent_at;  /* realtime */
    uint32_t flags;  /* enum protocol_message_flags */
    uint32_t attempt;
    uint32_t hops;              /* exchanges it came through */
    uint32_t n_lost;            /* copies that an exchange could not make */
    uint64_t copied;            /* an exchange has copied it up to this sequence; 0 = not begun */
    uint32_t cursor;            /* just behind it in the inbox, if it is kept for its blob */
    bool in_hand;               /* in the stash: its handler has begun */
    uint32_t head_size;         /* of the next */
    const void *head;           /* answers but REPLIED: the record without its payload; owned */
    struct topic topic;         /* bytes owned */
    struct payload payload;     /* of DONE: the result */
    struct share *share;        /* of its sender's group, in the mailbox; NULL = not counted */
    struct list share_link;     /* in that */
    struct blob_share *charged; /* of an answer: the share that counts it; NULL = none does */
    uint64_t charge;            /* its bytes there */
};

/* Makes a message in no list, without payload; the topic is copied. NULL when out of memory. */
struct envelope *envelope_new(uint16_t kind, const struct topic *topic);
/* Makes an answer of a record without its payload, which is copied. NULL when out of memory. */
struct envelope *envelope_new_answer(uint16_t kind, const void *head, uint32_t size);
/* Copies a message and its payload (a blob is shared). NULL when out of memory or descriptors. */
struct envelope *envelope_copy(const struct envelope *envelope);
/* Makes a message like this one with another topic, and moves the payload into it. NULL when out of
 * memory: nothing has changed. */
struct envelope *envelope_new_like(struct envelope *envelope, const struct topic *topic);
/* Frees a message that is in no list; NULL allowed. Returns NULL. */
struct envelope *envelope_free(struct envelope *envelope);

/* The fields of its MESSAGE record except the payload; the topic is borrowed. */
struct protocol_message envelope_message(const struct envelope *envelope);

/* Its share of MailboxMemoryMax=, bytes; a blob counts 64 KiB more for its descriptor. */
uint64_t envelope_bytes(const struct envelope *envelope);
/* Upper bound of envelope_bytes() for a message with this content. */
uint64_t envelope_bytes_of(const struct protocol_content *content);
