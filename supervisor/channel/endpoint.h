/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's end of a channel, tied to the loop: workers and attached clients alike. Hot
 * rings are polled, cold ones wait in the io_uring. What is sent is published, and its reader
 * woken, at the end of the turn. The peer is hostile: whatever it breaks comes as one call of
 * broken().
 */

#include "shared/ring/channel.h"
#include "supervisor/channel/payload.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>
#include <stdint.h>

struct endpoint;

enum {
    _ENDPOINT_E_SUCCESS,
    ENDPOINT_E_FULL, /* no room now: space() will be called when that may have changed */
};

struct endpoint_handler {
    /*
     * One record; its body may change under the reader. 0 = taken; ENDPOINT_E_FULL = the answer has
     * no room: present it again after endpoint_resume(); negative = violation. Must not deinit the
     * endpoint.
     */
    int (*record)(struct endpoint *endpoint, const struct ring_record *record);
    /*
     * A record that speaks of one of ours, read before its turn because reading is suspended. 0 or
     * negative, never ENDPOINT_E_FULL. NULL = record() takes it.
     */
    int (*envelope)(struct endpoint *endpoint, const struct ring_record *record);
    /*
     * Looks at each record that is published while reading is suspended, and takes those of
     * is_urgent() kinds before their turn. `first` = none before it has been looked at. 0,
     * negative, or ENDPOINT_E_FULL = this one has to wait for its turn. NULL = nothing is urgent.
     */
    int (*look)(struct endpoint *endpoint, const struct ring_record *record, bool first);
    bool (*is_urgent)(uint16_t kind);
    /* There may be room again after ENDPOINT_E_FULL: try. */
    void (*space)(struct endpoint *endpoint);
    /*
     * The peer has consumed this record of ours for good, and said all that it will say about it;
     * `cursor` is just behind it. NULL = nobody wants to know.
     */
    void (*consumed)(struct endpoint *endpoint, const struct ring_record *record, uint32_t cursor);
    /*
     * The peer broke the protocol; nothing more is read. Called once, from within whatever found
     * out: must not deinit.
     */
    void (*broken)(struct endpoint *endpoint, const char *what);
};

/* How far records of some kinds were read before their turn. */
struct endpoint_ahead {
    bool is;
    uint32_t end;
};

struct endpoint {
    struct loop *loop;
    struct channel channel;
    const struct endpoint_handler *handler;

    /* The control socket and the blobs that go through it. */
    int control;              /* our end */
    struct blob_share *blobs; /* of the peer */
    uint64_t blobs_sent, blobs_received;
    unsigned blobs_left; /* given up, and perhaps still in the socket */

    /* Reading. */
    bool dead;         /* broken, or being taken down */
    bool draining;     /* the peer is dead; what it has published is read to the end */
    bool suspended;    /* by ENDPOINT_E_FULL, until endpoint_resume() */
    bool batch_ended;  /* by endpoint_end_batch() */
    bool reading;      /* a handler has a record in hand */
    bool urgent_waits; /* the next record for look() has to wait for its turn */
    struct endpoint_ahead envelopes, urgent;

    /* Writing. */
    bool wants_space;
    bool space_due;  /* space() comes with the next turn */
    unsigned n_late; /* records committed and not published yet */

    /*
     * The producer's view of what the peer has consumed. It follows the peer's cursor once
     * everything is read that the peer had published before: no record is overwritten while
     * something that the peer said about it is unread.
     */
    _Atomic uint32_t gate;
    bool checking;       /* the peer's cursor is ahead of the gate: */
    uint32_t check_head; /* where it is */
    uint32_t check_tail; /* how far the peer's ring has to be read first */

    struct loop_hot hot;
    struct loop_watch tail_watch, head_watch;
    struct loop_deferred publish, read_ahead;
};

struct endpoint_options {
    uint32_t ring_size, inline_max;
    uint32_t spin_usec;       /* how long the peer may spin before it sleeps */
    struct blob_share *blobs; /* what the peer's blobs count for, borrowed; NULL = no bound */
};

/* Descriptors for the peer; close the control end and call endpoint_forget_fds() after handing them
 * over. */
struct endpoint_fds {
    struct channel_fds channel;
    int control;
};

/* 0 or -errno, nothing left behind. Reading starts with endpoint_open(). */
int endpoint_init(struct endpoint *endpoint, struct loop *loop,
                  const struct endpoint_options *options, const struct endpoint_handler *handler,
                  struct endpoint_fds *ret_fds);
void endpoint_forget_fds(struct endpoint *endpoint, struct endpoint_fds *fds);
void endpoint_deinit(struct endpoint *endpoint);

/* Begins to read. 0 or -errno. */
int endpoint_open(struct endpoint *endpoint);

/* Reads what a dead peer has published to the end, then nothing any more. */
void endpoint_drain(struct endpoint *endpoint);

/* Reads now what the peer has published by now, as far as one turn goes. Whether there is more. */
bool endpoint_catch_up(struct endpoint *endpoint);

/* What record() has just been given cost a whole turn: the next one is read in the next turn. */
void endpoint_end_batch(struct endpoint *endpoint);

/* Reads on after ENDPOINT_E_FULL from record(). */
void endpoint_resume(struct endpoint *endpoint);

/* Room for a record's body. 0, ENDPOINT_E_FULL, -EMSGSIZE, or -EPROTO (broken() follows). */
int endpoint_reserve(struct endpoint *endpoint, uint32_t size, void **ret);
void endpoint_commit(struct endpoint *endpoint, uint16_t kind, uint32_t size);
/*
 * The same for one of several that are under way: `more` = how many still are. It is shown together
 * with the next ones, a few microseconds later if need be, so that the peer wakes up less often.
 */
void endpoint_commit_of_many(struct endpoint *endpoint, uint16_t kind, uint32_t size,
                             unsigned more);

/*
 * Takes notice of what the peer has consumed. Whether there was anything. What it said about it is
 * read before; where that cannot be done at once, space() follows at the end of the turn.
 */
bool endpoint_advance(struct endpoint *endpoint);

/*
 * Has space() called once the peer has consumed something. False if it has by now: then it is not
 * called.
 */
bool endpoint_await(struct endpoint *endpoint);

/* The control word of the inbox, enum memory_control; a peer that sleeps on it is woken. */
void endpoint_set_control(struct endpoint *endpoint, uint32_t bits);

/* The peer broke a rule that only the endpoint's owner knows: broken() follows. */
void endpoint_break(struct endpoint *endpoint, const char *what);

/* Raises the mark in the inbox header: the handle of the job to cancel. Seen without a wake-up. */
void endpoint_mark(struct endpoint *endpoint, uint64_t handle);

/* Whether endpoint_take() can take this payload now: the payloads of earlier records are taken. */
bool endpoint_is_next(const struct endpoint *endpoint, const struct payload_wire *wire);

/*
 * A payload from a record into a payload: copied, or its blob fetched from the control socket and
 * checked. 0, -EPROTO, or -ENOMEM or -EMFILE: then this one is lost, and the next one comes.
 */
int endpoint_take(struct endpoint *endpoint, const struct payload_wire *wire, struct payload *ret);

/*
 * How a payload goes out: fills `ret` for the put of a record. A blob (or what exceeds InlineMax)
 * is sent over the control socket first. 0, ENDPOINT_E_FULL (socket full), or -errno.
 */
int endpoint_give(struct endpoint *endpoint, const struct payload *payload,
                  struct payload_wire *ret);
