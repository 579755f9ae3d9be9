/* SPDX-License-Identifier: MIT */
#pragma once

/* The two shared memories of a worker or an attached client, as sealed memfds.
 *
 * Only the supervisor writes the inbox: its ring towards the worker, how far that is published, and
 * the worker's jobs. The supervisor reads the inbox back and trusts it, even after a crash of its
 * predecessor, so the kernel refuses a writable mapping to everyone else.
 *
 * The outbox has the worker's ring towards the supervisor, its state page, and the words with which
 * the two sides wake, stop and release each other. Both sides can write all of it; neither trusts
 * anything that it reads there.
 *
 *   offset 0      struct memory_header
 *   36864         state page (outbox only: MEMORY_STATE_MAX bytes)
 *   ring_offset   ring data, ring_size bytes, a power of two
 *
 * A new supervisor cannot map the inbox of its predecessor for writing, because the seal forbids
 * it. It makes the next inbox, a copy with the same cursors and a higher epoch (memory_renew()),
 * and sends its descriptor over the control socket. Everything that must reach a busy or sleeping
 * worker is in the outbox, which a new supervisor can map. So the worker takes the next inbox only
 * when it has read the present one to its end (memory_replace()).
 *
 * Steps for changing this layout: raise MEMORY_VERSION; adjust the offsets asserted below; adjust
 * memory_open(), which refuses any other version; say so in CHANGELOG.md, since workers linked
 * statically must be rebuilt. */

#include "shared/base/clock.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_MAGIC         UINT32_C(0x50554f54) /* "TOUP" */
#define MEMORY_VERSION       14
#define MEMORY_HEADER_SIZE   36864
#define MEMORY_STATE_MAX     4096
#define MEMORY_OWNER_SIZE    64
#define MEMORY_JOBS_MAX      64 /* the maximum of Prefetch= */
#define MEMORY_JOB_KEPT      504
#define MEMORY_RING_SIZE_MIN UINT32_C(4096)
#define MEMORY_RING_SIZE_MAX (UINT32_C(1) << 30)

enum memory_role {
    MEMORY_INBOX = 1,
    MEMORY_OUTBOX = 2,
};

enum memory_sleep {
    MEMORY_AWAKE = 0,
    MEMORY_SLEEPS = 1, /* on the other side's bell or on the eventfd, depending on the back end */
    MEMORY_SLEEPS_EVENTFD = 2, /* on the eventfd, with any back end */
};

enum memory_control {
    MEMORY_CONTROL_STOP = 1u << 0,  /* take no further message or job */
    MEMORY_CONTROL_PAUSE = 1u << 1, /* take no further MESSAGE, but answers and jobs */
};

/* State that the next supervisor has taken over, as saved by an upgrade; 0 after a crash. The
 * worker ignores unknown bits. */
enum memory_kept {
    MEMORY_KEPT_ASKS = 1u << 0,     /* open asks are answered */
    MEMORY_KEPT_MONITORS = 1u << 1, /* ends are reported */
    MEMORY_KEPT_REQUESTS = 1u << 2, /* a client's requests about jobs are answered */
    MEMORY_KEPT_TIES = 1u << 3,     /* names, subscriptions, exchanges and timers continue */
};

/* Words with which one side signals the other. The outbox has them for both sides. */
struct memory_words {
    /* How far this side has consumed the other's ring. The other side sleeps here when its ring is
     * full. */
    _Alignas(64) _Atomic uint32_t head;
    /* enum memory_sleep: whether, and how, the other side must wake this one when its tail moves.
     */
    _Alignas(64) _Atomic uint32_t sleeping;
    /* Raised while this side may sleep on the other's head, its own ring being full. */
    _Alignas(64) _Atomic uint32_t blocked;
    /* The supervisor's: the number of the job to cancel. The worker's: the heartbeat, any
     * changing value. */
    _Alignas(64) _Atomic uint64_t mark;
    /* The supervisor's: bits of enum memory_control. The worker checks them before it takes the
     * next message, so they overtake all records in the ring. */
    _Alignas(64) _Atomic uint32_t control;
    /* Counts wake-ups. The other side sleeps here while it has nothing to read. */
    _Alignas(64) _Atomic uint32_t bell;
    /* The supervisor's: the epoch of the last inbox that it has sent. The worker's: that of the
     * last inbox that it has taken. */
    _Atomic uint32_t epoch;
};

/* A job that the worker has, for the next supervisor. */
struct memory_job {
    _Alignas(128) uint32_t cursor;             /* just behind its JOB record */
    _Alignas(8) uint8_t kept[MEMORY_JOB_KEPT]; /* what only the supervisor reads */
};
_Static_assert(sizeof(struct memory_job) == 512, "layout");

/* Whether the JOB record of this entry is published in the inbox with this tail. The cursor of an
 * unpublished record is at most a ring's length ahead of the tail. */
static inline bool memory_job_is_published(const struct memory_job *job, uint32_t tail,
                                           uint32_t ring_size)
{
    return job->cursor - tail - 1 >= ring_size;
}

/* Where to look for the stacks of a worker, by the worker's own word. */
struct memory_crash {
    _Alignas(128) uint32_t tid; /* of the thread that crashed, in its own PID namespace */
    int32_t signal, code;       /* as in siginfo_t */
    uint32_t python_version;    /* Py_Version, from the start on; 0 = no interpreter */
    uint64_t address;           /* siginfo_t.si_addr */
    uint64_t context;           /* of the ucontext_t of its signal handler */
    uint64_t python;            /* of _PyRuntime, from the start on */
};
_Static_assert(sizeof(struct memory_crash) == 128, "layout");

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
    uint32_t epoch;        /* inbox: 0 for the first one, then one more for each that follows */
    uint32_t resumed;      /* inbox, epoch above 0: up to where in the outbox the former supervisor
                              had read; this one reads on from there */
    uint32_t kept;         /* inbox: enum memory_kept */
    uint8_t unused0[24];

    /* How far the owner has published records in the ring of this memory. */
    _Alignas(64) _Atomic uint32_t tail;
    /* Outbox: the worker is crashing, and `crash` says where. */
    _Atomic uint32_t crashed;
    /* Inbox: a worker that crashes waits while this is set, until the supervisor has looked. */
    _Atomic uint32_t evidence;
    /* Inbox: a cursor at the beginning of a record that is not overwritten, for the next
     * supervisor. */
    _Alignas(64) _Atomic uint32_t gate;
    /* Inbox: a bit for each entry of `jobs` that is in use. */
    _Atomic uint64_t hands;

    /* Outbox: seqlock over the state page; odd during a write. */
    _Alignas(64) _Atomic uint32_t state_sequence;
    _Atomic uint32_t state_size;
    /* Outbox: the futex word of a robust lock of MEMORY_OWNER_SIZE bytes that the worker holds
     * while it lives. The kernel marks it when the holder dies. 0 = not held. */
    _Alignas(64) _Atomic uint32_t owner;
    /* Outbox: cursor just behind the current record, stored before its handler runs; equal to the
     * worker's `head` when there is none. */
    _Alignas(64) _Atomic uint32_t taken;
    /* Outbox. */
    struct memory_words worker, supervisor;

    /* Inbox. */
    _Alignas(128) struct memory_job jobs[MEMORY_JOBS_MAX];
    /* Outbox. */
    struct memory_crash crash;
    uint8_t unused1[MEMORY_HEADER_SIZE - 1152 - MEMORY_JOBS_MAX * 512 - 128];
};

_Static_assert(offsetof(struct memory_header, epoch) == 28, "layout");
_Static_assert(offsetof(struct memory_header, tail) == 64, "layout");
_Static_assert(offsetof(struct memory_header, crashed) == 68, "layout");
_Static_assert(offsetof(struct memory_header, evidence) == 72, "layout");
_Static_assert(offsetof(struct memory_header, gate) == 128, "layout");
_Static_assert(offsetof(struct memory_header, state_sequence) == 192, "layout");
_Static_assert(offsetof(struct memory_header, state_size) == 196, "layout");
_Static_assert(offsetof(struct memory_header, owner) == 256, "layout");
_Static_assert(offsetof(struct memory_header, taken) == 256 + MEMORY_OWNER_SIZE, "layout");
_Static_assert(offsetof(struct memory_header, worker) == 384, "layout");
_Static_assert(offsetof(struct memory_header, supervisor) == 768, "layout");
_Static_assert(offsetof(struct memory_header, jobs) == 1152, "layout");
_Static_assert(offsetof(struct memory_header, crash) == 33920, "layout");
_Static_assert(offsetof(struct memory_words, sleeping) == 64, "layout");
_Static_assert(offsetof(struct memory_words, blocked) == 128, "layout");
_Static_assert(offsetof(struct memory_words, mark) == 192, "layout");
_Static_assert(offsetof(struct memory_words, control) == 256, "layout");
_Static_assert(offsetof(struct memory_words, bell) == 320, "layout");
_Static_assert(offsetof(struct memory_words, epoch) == 324, "layout");
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
 * F_SEAL_FUTURE_WRITE afterwards, so the kernel refuses a writable mapping to everyone else; the
 * outbox is mapped writable by both sides and sealed against resizing. The descriptor is
 * close-on-exec. Returns 0, -EINVAL, or an error of memfd_create(2), ftruncate(2), fcntl(2),
 * mmap(2). End `ret` with memory_deinit(). */
int memory_create(struct memory *ret, const struct memory_options *options);

/* Maps a memory of memory_create() in the other process: an inbox read-only, an outbox writable.
 * Takes over `fd` only on success. -EPROTO if magic, version, role, sizes or seals are not as they
 * must be. */
int memory_open(struct memory *ret, int fd, enum memory_role role);

/* Supervisor side, after a crash of the predecessor: like memory_create(), but makes the inbox that
 * follows the one behind `fd`: a copy of its header, its jobs and the records from the gate to the
 * tail, with the next epoch. `fd` stays the caller's. Returns 0, -EPROTO like memory_open(), or
 * another -errno. */
int memory_renew(struct memory *ret, int fd);

/* Calls `fn` for each job of the inbox behind `fd` whose JOB record was published. Needs no memory.
 * Returns 0, or fails like memory_renew(). */
typedef void (*memory_job_fn)(void *userdata, const struct memory_job *job);
int memory_scan_jobs(int fd, memory_job_fn fn, void *userdata);

/* Worker side: maps the next inbox in the place of this one, so that pointers into it stay valid.
 * `fd` stays the caller's. Returns 0, -EPROTO like memory_open() and for a ring of another size, or
 * another -errno; after an error the mapping is unchanged. */
int memory_replace(struct memory *inbox, int fd);

/* Closes the descriptor and keeps the mapping, after the worker has inherited its own
 * descriptor. */
void memory_close_fd(struct memory *memory);

void memory_deinit(struct memory *memory);

/* State page, writer (owner of the outbox): bytes above MEMORY_STATE_MAX are refused with
 * -EMSGSIZE. */
int memory_state_write(struct memory *outbox, const void *data, size_t size);

/* State page, reader: copies at most MEMORY_STATE_MAX bytes to `data`, which must have room for
 * them. Returns the size (also in `*ret_size`), 0 if none was ever written, -EAGAIN if the writer
 * was in the middle of a write at each of a bounded number of tries, or died there: `data` then
 * holds the last try's bytes and `*ret_size` their number. */
int memory_state_read(const struct memory *outbox, void *data, size_t *ret_size);
