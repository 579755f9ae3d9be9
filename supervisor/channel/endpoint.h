/* SPDX-License-Identifier: MIT */
#pragma once

/* The supervisor's end of a channel to a worker or an attached client. Hot rings are polled, cold
 * ones wait in the io_uring. Records are published, and the peer is woken, at the end of the turn.
 * The peer is hostile: the first violation calls broken(). */

#include "shared/ring/channel.h"
#include "supervisor/channel/payload.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/taker.h"
#include "supervisor/loop/work-queue.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct endpoint;

enum {
    _ENDPOINT_E_SUCCESS,
    ENDPOINT_E_FULL,  /* no room now: space() will be called when that may have changed */
    ENDPOINT_E_BLOB,  /* the record's blob is being received */
    ENDPOINT_E_LATER, /* the record waits for its turn, even while the endpoint is drained */
    ENDPOINT_E_MORE,  /* the record is carried out in parts: it is read again in the next turn */
};

struct endpoint_handler {
    /* Handles a record, whose body the peer can still change. Returns 0, ENDPOINT_E_FULL (the
     * answer has no room) or ENDPOINT_E_LATER (both: called again after endpoint_resume()),
     * ENDPOINT_E_BLOB from endpoint_take() (called again when the blob is there), ENDPOINT_E_MORE,
     * or negative for a violation. Must not deinit the endpoint. */
    int (*record)(struct endpoint *endpoint, const struct ring_record *record);
    /* Handles a report about one of our records, read ahead because reading is suspended. Returns 0
     * or negative, never ENDPOINT_E_FULL. NULL = record() handles it. */
    int (*report)(struct endpoint *endpoint, const struct ring_record *record);
    /* Called with each record that is published while reading is suspended; handles those of
     * is_urgent() kinds. `first` = the first one since then. Returns 0, negative, or
     * ENDPOINT_E_FULL, _BLOB or _LATER if this one must wait for its turn. NULL = nothing is
     * urgent. */
    int (*look)(struct endpoint *endpoint, const struct ring_record *record, bool first);
    bool (*is_urgent)(uint16_t kind);
    /* Called when there may be room again after ENDPOINT_E_FULL. */
    void (*space)(struct endpoint *endpoint);
    /* Called when a drain can continue. NULL = the endpoint is not drained. */
    void (*drainable)(struct endpoint *endpoint);
    /* The peer has consumed this record of ours, and all its reports about it are read; `cursor` is
     * just behind it. May be NULL. */
    void (*consumed)(struct endpoint *endpoint, const struct ring_record *record, uint32_t cursor);
    /* The peer broke the protocol; its ring is no longer read. Called once, from within any other
     * call: must not deinit. */
    void (*broken)(struct endpoint *endpoint, const char *what);
    /* The peer says that it crashes (struct memory_crash). Called once. NULL = it is ignored. */
    void (*crashing)(struct endpoint *endpoint);
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
    unsigned blobs_left;          /* not received, but lost; perhaps still in the socket */
    struct taker_receipt receipt; /* of the next one */

    struct loop_watch hand_over_watch; /* the next inbox waits for room in the control socket */
    bool resumed;                      /* adopted, and no blob received since */

    /* Reading. */
    bool dead;     /* broken, or being taken down */
    bool costly;   /* broken because each system call with its control socket takes long */
    bool gone;     /* broken because the peer has closed its socket, perhaps as it has ended */
    bool draining; /* the peer is gone; its records are read as far as `end` */
    uint32_t end;
    bool suspended;    /* by ENDPOINT_E_FULL, _BLOB or _LATER, until endpoint_resume() */
    bool batch_ended;  /* by endpoint_end_batch() */
    bool crashing;     /* the peer has said so */
    bool reading;      /* a handler is running */
    bool urgent_waits; /* the next record for look() must wait for its turn */
    struct endpoint_ahead reports, urgent;

    /* Writing. */
    bool wants_space;
    bool space_due;  /* space() comes with the next turn */
    unsigned n_late; /* records committed and not published yet */

    /* The peer's consumption, as the producer sees it. It follows the peer's cursor after all
     * earlier records of the peer are read, so no record is overwritten while a report about it is
     * unread. */
    _Atomic uint32_t *gate; /* in the inbox, for the next supervisor */
    bool checking;          /* the peer's cursor is ahead of the gate */
    uint32_t check_head;    /* where it is */
    uint32_t check_tail;    /* how far the peer's ring must be read first */

    struct loop_hot hot;
    struct loop_watch tail_watch, head_watch;
    struct loop_deferred publish, read_ahead;
    struct task announcement; /* wakes an adopted peer */
};

struct endpoint_options {
    uint32_t ring_size, inline_max;
    uint32_t spin_usec;       /* how long the peer may spin before it sleeps */
    struct blob_share *blobs; /* share that the peer's blobs count in, borrowed; NULL = no bound */
    struct endpoint_stock *stock; /* borrowed; NULL = none */
};

/* Descriptors for the peer. After handing them over, call endpoint_forget_fds(); or close
 * `control`, and call endpoint_close_memories() once the keeper has the others. */
struct endpoint_fds {
    struct channel_fds channel;
    int control;
};

/* The memories and sockets of the next endpoint with the same options, made in advance, while a
 * process dies whose successor will need them. {0} is empty. */
struct endpoint_stock {
    bool full;
    struct channel_options options;
    struct channel channel;
    int control[2]; /* our end, the peer's */
    struct endpoint_fds fds;
};

/* Best effort; a full stock stays as it is. `options->stock` is not used. */
void endpoint_stock_fill(struct endpoint_stock *stock, const struct loop *loop,
                         const struct endpoint_options *options);
void endpoint_stock_deinit(struct endpoint_stock *stock);

/* 0 or -errno, nothing left behind: -EUSERS if sockets of the share's owner wait to be closed
 * (taker_is_full()). Reading starts with endpoint_open(). */
int endpoint_init(struct endpoint *endpoint, struct loop *loop,
                  const struct endpoint_options *options, const struct endpoint_handler *handler,
                  struct endpoint_fds *ret_fds);
void endpoint_forget_fds(struct endpoint *endpoint, struct endpoint_fds *fds);
/* Closes our descriptors of the memories; the mappings stay. */
void endpoint_close_memories(struct endpoint *endpoint);

void endpoint_deinit(struct endpoint *endpoint);

/* Begins to read. 0 or -errno. */
int endpoint_open(struct endpoint *endpoint);

/* The peer is gone. Its published records are still read, but its answers are not needed: a record
 * whose answer has no room, or that must wait, is dropped. */
void endpoint_begin_drain(struct endpoint *endpoint);
/* Reads records of a peer that is gone, for at most one turn's share, and stops reading after the
 * last one. Returns false if there are more, or a blob must be received first: call it again, in
 * another turn, after drainable(). */
bool endpoint_drain(struct endpoint *endpoint);

/* Reads now, for at most one turn's share. Returns whether there is more that can be read now. If
 * a draining endpoint awaits a blob, drainable() follows. */
bool endpoint_catch_up(struct endpoint *endpoint);

/* Ends this turn's share: the next record is read in the next turn. */
void endpoint_end_batch(struct endpoint *endpoint);

/* Continues to read after ENDPOINT_E_FULL from record(). */
void endpoint_resume(struct endpoint *endpoint);

/* Reserves room for a record's body. Returns 0, ENDPOINT_E_FULL, -EMSGSIZE, or -EPROTO (broken()
 * follows). */
int endpoint_reserve(struct endpoint *endpoint, uint32_t size, void **ret);
void endpoint_commit(struct endpoint *endpoint, uint16_t kind, uint32_t size);
/* Publishes committed records immediately, when the loop has no further turn. */
void endpoint_flush(struct endpoint *endpoint);
/* Like endpoint_commit(), but for one of several records: `more` = how many are still to come. They
 * are published together, within microseconds, so that the peer is woken less often. */
void endpoint_commit_of_many(struct endpoint *endpoint, uint16_t kind, uint32_t size,
                             unsigned more);

/* Updates the peer's consumption. Returns whether it has changed. If the peer's reports must be
 * read first, space() follows at the end of the turn. */
bool endpoint_advance(struct endpoint *endpoint);

/* Makes space() be called once the peer consumes something. Returns false if it already has: then
 * space() is not called. */
bool endpoint_await(struct endpoint *endpoint);

/* Sets the supervisor's control word (enum memory_control), and wakes a peer that sleeps on it. */
void endpoint_set_control(struct endpoint *endpoint, uint32_t bits);

/* Reports a violation that the owner found: broken() follows. */
void endpoint_break(struct endpoint *endpoint, const char *what);

/* Sets the supervisor's mark: the handle of the job to cancel. The worker polls it. */
void endpoint_mark(struct endpoint *endpoint, uint64_t handle);

/* Returns whether endpoint_take() can take this payload now: those of earlier records come first.
 */
bool endpoint_is_next(struct endpoint *endpoint, const struct payload_wire *wire);

/* Returns whether a record waits for its blob. */
static inline bool endpoint_awaits_blob(const struct endpoint *endpoint)
{
    return endpoint->receipt.state != TAKER_IDLE;
}

/* Takes a record's payload: copies it, or receives and checks its blob. Returns 0, ENDPOINT_E_BLOB,
 * -EPROTO, or an error of endpoint_is_loss(): then this payload is lost, and the next one follows.
 */
int endpoint_take(struct endpoint *endpoint, const struct payload_wire *wire, struct payload *ret);

static inline bool endpoint_is_loss(int r)
{
    return r == -ENOMEM || r == -EMFILE || r == -ECONNRESET;
}

/* Fills `ret` for a record. A blob, or a payload above InlineMax, is first sent over the control
 * socket. Returns 0, ENDPOINT_E_FULL (socket full), or -errno. */
int endpoint_give(struct endpoint *endpoint, const struct payload *payload,
                  struct payload_wire *ret);
