/* SPDX-License-Identifier: MIT */
#pragma once

/* The two shared memories of a worker or an attached client, as sealed memfds.
 *
 *   inbox   written by the supervisor alone: its ring towards the worker, its cursors and flags
 *   outbox  written by the worker alone: its ring towards the supervisor, its cursors, state page
 *
 * Both begin with the same header page; each field is written by the memory's owner and by nobody
 * else.
 *
 *   offset 0      struct memory_header (one page)
 *   4096          state page (outbox only: MEMORY_STATE_MAX bytes; inbox: absent)
 *   ring_offset   ring data, ring_size bytes, a power of two
 *
 * Steps for changing this layout: raise MEMORY_VERSION; adjust the offsets asserted below; adjust
 * memory_open(), which refuses any other version; say so in CHANGELOG.md, since workers linked
 * statically must be rebuilt. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_MAGIC         UINT32_C(0x50554f54) /* "TOUP" */
#define MEMORY_VERSION       5
#define MEMORY_HEADER_SIZE   4096
#define MEMORY_STATE_MAX     4096
#define MEMORY_OWNER_SIZE    64
#define MEMORY_RING_SIZE_MIN UINT32_C(4096)
#define MEMORY_RING_SIZE_MAX (UINT32_C(1) << 30)

enum memory_role {
    MEMORY_INBOX = 1,
    MEMORY_OUTBOX = 2,
};

enum memory_sleep {
    MEMORY_AWAKE = 0,
    MEMORY_SLEEPS = 1, /* on the other memory's tail or on the eventfd, depending on the back end */
    MEMORY_SLEEPS_EVENTFD = 2, /* on the eventfd, whatever the back end */
};

enum memory_control {
    MEMORY_CONTROL_STOP = 1u << 0,  /* take no further message or job */
    MEMORY_CONTROL_PAUSE = 1u << 1, /* take no further MESSAGE; answers and jobs go on */
};

struct memory_header {
    /* Line 0: constant after creation. */
    uint32_t magic;
    uint16_t version;
    uint16_t role;
    uint32_t ring_size;
    uint32_t ring_offset;
    uint32_t inline_max;   /* largest payload that travels inside a record, bytes */
    uint32_t wake_backend; /* enum wake_backend */
    uint32_t spin_usec;    /* inbox: how long its reader may spin before it sleeps; 0 = not */
    uint8_t unused0[36];

    /* How far the owner has published records in the ring of this memory. The other side sleeps
     * here. */
    _Alignas(64) _Atomic uint32_t tail;
    /* How far the owner has consumed the ring of the other memory. The other side sleeps here when
     * full. */
    _Alignas(64) _Atomic uint32_t head;
    /* enum memory_sleep: whether, and how, the other side must wake the owner when its tail moves.
     */
    _Alignas(64) _Atomic uint32_t sleeping;
    /* Raised while the owner may sleep on the other memory's head, its own ring being full. */
    _Alignas(64) _Atomic uint32_t blocked;
    /* Inbox: the handle of the job to cancel. Outbox: the heartbeat, any changing value. */
    _Alignas(64) _Atomic uint64_t mark;
    /* Outbox: seqlock over the state page; odd while a write is under way. */
    _Alignas(64) _Atomic uint32_t state_sequence;
    _Atomic uint32_t state_size;
    /* Outbox: the futex word of a robust lock of MEMORY_OWNER_SIZE bytes that the worker holds
     * while it lives. The kernel marks it when the holder dies. 0 = not held. */
    _Alignas(64) _Atomic uint32_t owner;
    /* Inbox: bits of enum memory_control. The worker checks them before it takes the next message,
     * so they overtake all records in the ring. */
    _Alignas(64) _Atomic uint32_t control;
    /* Outbox: cursor just behind the record in hand, stored before its handler runs; equal to
     * `head` when nothing is in hand. */
    _Alignas(64) _Atomic uint32_t taken;
    uint8_t unused1[4096 - 640 + 60];
};

_Static_assert(offsetof(struct memory_header, spin_usec) == 24, "layout");
_Static_assert(offsetof(struct memory_header, tail) == 64, "layout");
_Static_assert(offsetof(struct memory_header, head) == 128, "layout");
_Static_assert(offsetof(struct memory_header, sleeping) == 192, "layout");
_Static_assert(offsetof(struct memory_header, blocked) == 256, "layout");
_Static_assert(offsetof(struct memory_header, mark) == 320, "layout");
_Static_assert(offsetof(struct memory_header, state_sequence) == 384, "layout");
_Static_assert(offsetof(struct memory_header, state_size) == 388, "layout");
_Static_assert(offsetof(struct memory_header, owner) == 448, "layout");
_Static_assert(offsetof(struct memory_header, control) == 448 + MEMORY_OWNER_SIZE, "layout");
_Static_assert(offsetof(struct memory_header, taken) == 576, "layout");
_Static_assert(sizeof(struct memory_header) == MEMORY_HEADER_SIZE, "layout");

/* A memory as mapped by this process; read-only for the side that does not own it. */
struct memory {
    int fd; /* -1 after memory_close_fd() */
    struct memory_header *header;
    uint8_t *ring;
    uint8_t *state; /* outbox only, else NULL */
    size_t size;    /* of the whole mapping, bytes */
    uint32_t ring_size;
};

/* clang-format off */
#define MEMORY_NULL {.fd = -1}
/* clang-format on */

struct memory_options {
    enum memory_role role;
    uint32_t ring_size;  /* a power of two within MEMORY_RING_SIZE_MIN … MAX */
    uint32_t inline_max; /* at most ring_size / 4 */
    uint32_t wake_backend;
    uint32_t spin_usec; /* at most SPIN_USEC_MAX */
};

/* Makes a memfd of `size` zero bytes that can be sealed: close-on-exec, and not executable if the
 * kernel supports that. Returns the descriptor or -errno. `name` appears in /proc. */
int memory_new_fd(const char *name, size_t size);

/* Makes and maps a memory (supervisor side). The inbox is mapped writable and sealed with
 * F_SEAL_FUTURE_WRITE afterwards, so the kernel refuses everybody else a writable mapping; the
 * outbox is mapped writable too (the supervisor wakes nobody there, but TSan builds share it) and
 * sealed against resizing. The descriptor is close-on-exec. Returns 0, -EINVAL, or what
 * memfd_create(2), ftruncate(2), fcntl(2), mmap(2) say. `ret` is to be ended with
 * memory_deinit(). */
int memory_create(struct memory *ret, const struct memory_options *options);

/* Maps what memory_create() made, in the other process: inbox read-only, outbox writable. Takes
 * `fd` over on success only. -EPROTO when magic, version, role, sizes or seals are not as they must
 * be. */
int memory_open(struct memory *ret, int fd, enum memory_role role);

/* Closes the descriptor and keeps the mapping, after the worker has inherited its own
 * descriptor. */
void memory_close_fd(struct memory *memory);

void memory_deinit(struct memory *memory);

/* State page, writer (owner of the outbox): bytes above MEMORY_STATE_MAX are refused with
 * -EMSGSIZE. */
int memory_state_write(struct memory *outbox, const void *data, size_t size);

/* State page, reader: copies at most MEMORY_STATE_MAX bytes to `data`, which must have room for
 * them. Returns the size (in `*ret_size` too), 0 when none was ever written, -EAGAIN when the
 * writer was in the middle of a write on each of a bounded number of tries (also when it died
 * there: `data` then holds the last try's bytes and `*ret_size` their number). */
int memory_state_read(const struct memory *outbox, void *data, size_t *ret_size);
