/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A letter: what one actor is to get, while the supervisor holds it. Most never become one: they go
 * from ring to ring. Kind is that of the record it will be sent as: PROTOCOL_MESSAGE,
 * PROTOCOL_REPLIED, PROTOCOL_ASK_FAILED or PROTOCOL_TERMINATED.
 */

#include "shared/clock.h"
#include "shared/index.h"
#include "shared/list.h"
#include "shared/protocol-actors.h"
#include "supervisor/channel/parcel.h"
#include <stdbool.h>
#include <stdint.h>

enum letter_place {
    LETTER_NOWHERE, /* in somebody's hand */
    LETTER_WAITS,
    LETTER_ANSWERS,
    LETTER_STASHED,
};

struct letter {
    struct list link;         /* in the one list that owns it */
    struct index_entry by_id; /* in the stash */
    enum letter_place place;  /* in a postbox; its own */
    uint16_t kind;
    uint64_t id;     /* counts up over all letters and messages; also their order */
    uint64_t sender; /* reference; 0 = nobody. REPLIED: who answered. TERMINATED: who is gone */
    uint64_t to;     /* reference; for a letter whose recipient is not there */
    uint64_t ask;    /* handle; 0 = tell */
    uint64_t timer;  /* id; 0 = none */
    uint64_t cookie; /* answers: the asker's own number */
    usec_t sent_at;  /* realtime */
    uint32_t flags;  /* enum protocol_message_flags */
    uint32_t attempt;
    uint32_t error;        /* ASK_FAILED: errno */
    uint32_t hops;         /* exchanges it came through */
    uint32_t cursor;       /* in the inbox, just behind it: letters kept for their blob */
    bool in_hand;          /* in the stash: its handler has begun */
    struct topic topic;    /* bytes owned */
    struct parcel payload; /* ASK_FAILED and TERMINATED: a text */
};

/* A letter in no list, without payload; the topic is copied. NULL when out of memory. */
struct letter *letter_new(uint16_t kind, const struct topic *topic);
/* Also in all other fields but link, with a copy of the payload (a blob is shared).
 * NULL when out of memory or descriptors. */
struct letter *letter_copy(const struct letter *letter);
/* Another one with this topic, and the payload moved into it. NULL when out of memory: nothing has
 * changed. The other letter stays the caller's. */
struct letter *letter_new_like(struct letter *letter, const struct topic *topic);
struct letter *letter_free(struct letter *letter); /* in no list; NULL allowed; returns NULL */

/* What it counts towards MailboxMemoryMax=, bytes; a blob counts 64 KiB more for its descriptor. */
uint64_t letter_bytes(const struct letter *letter);
