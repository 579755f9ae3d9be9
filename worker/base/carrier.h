/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The library's end of a channel, embedded in each worker and each client. Records are sent here
 * and nowhere else: room is reserved first, then the descriptor of a blob is sent, then the record
 * that names it is committed. Only the first two steps can fail, so records and descriptors keep
 * the same order.
 */

#include "shared/protocol/fields.h"
#include "shared/protocol/payload-wire.h"
#include "shared/ring/channel.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A payload to send that is too large for a record: memory to fill, sealed, sent by descriptor. */
struct blob {
    int fd;
    void *data; /* unmapped once sealed */
    size_t size;
    bool sealed;
};

/* clang-format off */
#define BLOB_NULL {.fd = -1}
/* clang-format on */

/* Maps memory to fill. Returns 0, -EINVAL for size 0, -EMSGSIZE, or another -errno. */
int blob_new(struct blob *ret, size_t size);

/* Makes a sealed blob with a copy of `data`. Returns 0 or -errno like blob_new(). */
int blob_copy(struct blob *ret, const void *data, size_t size);

/*
 * Sends the descriptor of a sealed blob. Returns 0, -EAGAIN if the peer must first take other
 * descriptors or, after a pause, if too many of this user's are in flight, -EPIPE if the peer is
 * gone.
 */
int blob_send(const struct blob *blob, int socket, uint64_t serial);

/* Waits until blob_send() is likely to succeed. Returns whether it is. */
bool blob_sendable(int socket, int timeout_ms);

void blob_deinit(struct blob *blob);

/* ---- the carrier ---- */

struct carrier;

struct carrier_class {
    /* Waits until there may be room for a record of `size` bytes. Returns 0 or -errno. */
    int (*wait_room)(struct carrier *carrier, uint32_t size);
    /*
     * Reads records that have arrived, without handling them, and waits up to `timeout` for the
     * first. Returns 1 if there was any, 0 if not, -EINTR or 0 if a signal handler ran, -EPIPE
     * if the supervisor is gone, or another -errno.
     */
    int (*pump)(struct carrier *carrier, usec_t timeout);
    /* Implements troupe_actor_turn(). */
    int (*turn)(struct carrier *carrier, usec_t timeout);
    /*
     * The supervisor was restarted, and all answers of the former one have been read. Requests
     * committed up to position `read` (struct carrier) will not be answered, later ones will.
     * Must not wait.
     */
    void (*restarted)(struct carrier *carrier, uint64_t read);
};

struct carrier {
    const struct carrier_class *class;
    struct channel channel;
    int control;          /* socket for descriptors */
    int poll_fd;          /* of carrier_fd(); -1 = none yet */
    bool over;            /* the supervisor hung up or broke the protocol */
    uint32_t inline_max;  /* larger payloads are blobs */
    uint64_t position;    /* bytes of all records committed: the ring's tail, without wrapping */
    uint32_t unpublished; /* records committed since the last flush */
    uint64_t blobs_sent;  /* also the serial of the last one */
    struct blob made;     /* memory that the program fills; fd -1 = none */
    int (*on_signal)(void *userdata); /* NULL = waits continue */
    void *signal_userdata;
};

/* Maps the rings. Takes over `control`, and on success also `fds`. Returns 0 or -errno. */
int carrier_open(struct carrier *ret, const struct carrier_class *class,
                 const struct channel_fds *fds, int control);
void carrier_deinit(struct carrier *carrier);

/*
 * Like ring_next(), but after a restart of the supervisor it continues with the next inbox, which
 * may also fail with -errno.
 */
int carrier_next(struct carrier *carrier, struct ring_record *ret);

/* Call after a wait that a signal handler may have ended. Returns 0 to continue, or the error to
 * fail with. */
int carrier_interrupted(struct carrier *carrier);

/* Reads all records that have arrived, without handling them. Returns 0 or -errno. */
int carrier_drain(struct carrier *carrier);

enum carrier_flags {
    CARRIER_TRY = 1u << 0,  /* returns -EAGAIN instead of waiting */
    CARRIER_MADE = 1u << 1, /* sends `made` if that is the payload */
};

/*
 * Reserves a record of `*room` bytes plus inline data. `payload` (NULL = none) is inline and of any
 * size; above InlineMax it becomes a blob, whose descriptor is sent. The caller must commit next.
 * Returns 0, -EAGAIN, -EINVAL if the size of `made` differs, -EMSGSIZE, -EPIPE, or another -errno.
 */
int carrier_begin(struct carrier *carrier, unsigned flags, struct payload_wire *payload,
                  uint32_t *room, void **ret);

/* Commits a record, without publishing it. `size` is the return value of a put function. Returns 0
 * or -errno. */
int carrier_commit(struct carrier *carrier, unsigned kind, int size);

/* Publishes the committed records. */
void carrier_flush(struct carrier *carrier);

/* Writes a record without publishing it. `payload` is a member of it, or NULL. Returns 0 or -errno
 * like carrier_begin(). */
#define carrier_put(carrier, kind, name, record, payload, flags)                                   \
    ({                                                                                             \
        uint32_t _room = PROTOCOL_ROOM(name);                                                      \
        void *_body;                                                                               \
        int _r = carrier_begin(carrier, flags, payload, &_room, &_body);                           \
                                                                                                   \
        if (_r == 0)                                                                               \
            _r = carrier_commit(carrier, kind, protocol_put_##name(_body, _room, record));         \
        _r;                                                                                        \
    })

/* Like carrier_put(), but also publishes the record. */
#define carrier_send(carrier, kind, name, record, payload)                                         \
    ({                                                                                             \
        int _sent = carrier_put(carrier, kind, name, record, payload, 0);                          \
                                                                                                   \
        if (_sent == 0)                                                                            \
            carrier_flush(carrier);                                                                \
        _sent;                                                                                     \
    })

/*
 * Returns an epoll descriptor, readable when there is something to read or `events` happen on
 * `socket`; it belongs to the carrier. Or -errno.
 */
int carrier_fd(struct carrier *carrier, int socket, uint32_t events);
