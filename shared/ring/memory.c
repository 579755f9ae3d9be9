/* SPDX-License-Identifier: MIT */
#include "shared/ring/memory.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/uapi.h"
#include "shared/ring/wake.h"
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define SEALS_RESIZE    (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SEALS_LOOKED_AT (SEALS_RESIZE | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)
#define STATE_TRIES     64

static int seals_of(enum memory_role role)
{
    return role == MEMORY_INBOX ? SEALS_RESIZE | F_SEAL_FUTURE_WRITE : SEALS_RESIZE;
}

static uint32_t ring_offset_of(enum memory_role role)
{
    return MEMORY_HEADER_SIZE + (role == MEMORY_OUTBOX ? MEMORY_STATE_MAX : 0);
}

static bool sizes_valid(uint32_t ring_size, uint32_t inline_max, uint32_t wake_backend)
{
    return ring_size >= MEMORY_RING_SIZE_MIN && ring_size <= MEMORY_RING_SIZE_MAX &&
           (ring_size & (ring_size - 1)) == 0 && inline_max <= ring_size / 4 &&
           (wake_backend == WAKE_FUTEX || wake_backend == WAKE_EVENTFD);
}

/* Checks the limit on the size of files first: exceeding it would end the process by SIGXFSZ, and
 * libtroupe does not change the signals of its program. */
static int set_size(int fd, size_t size)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size)
        return -EFBIG;
    return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

int memory_new_fd(const char *name, size_t size)
{
    _cleanup_close_ int fd = -1;
    int r = fault_inject("memfd");

    if (r < 0)
        return r;
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | TROUPE_MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    r = set_size(fd, size);
    return r < 0 ? r : TAKE_FD(fd);
}

/* Fills all but the descriptor. `at` is a mapping of that size to replace; NULL = none. */
static int map(struct memory *ret, int fd, enum memory_role role, size_t size, int protection,
               void *at)
{
    uint32_t ring_offset = ring_offset_of(role);
    uint8_t *start;
    int r = fault_inject("mmap");

    if (r < 0)
        return r;
    start = mmap(at, size, protection, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
    if (start == MAP_FAILED)
        return -errno;
    *ret = (struct memory){
        .fd = -1,
        .header = (struct memory_header *)(void *)start,
        .ring = start + ring_offset,
        .state = role == MEMORY_OUTBOX ? start + MEMORY_HEADER_SIZE : NULL,
        .size = size,
        .ring_size = (uint32_t)(size - ring_offset),
    };
    return 0;
}

int memory_create(struct memory *ret, const struct memory_options *options)
{
    _cleanup_(memory_deinit)
    struct memory memory = MEMORY_NULL;
    _cleanup_close_ int fd = -1;
    uint32_t ring_offset = ring_offset_of(options->role);
    size_t size = (size_t)ring_offset + options->ring_size;
    int r;

    if ((options->role != MEMORY_INBOX && options->role != MEMORY_OUTBOX) ||
        !sizes_valid(options->ring_size, options->inline_max, options->wake_backend))
        return -EINVAL;

    fd = memory_new_fd(options->role == MEMORY_INBOX ? "troupe-inbox" : "troupe-outbox", size);
    if (fd < 0)
        return fd;
    r = map(&memory, fd, options->role, size, PROT_READ | PROT_WRITE, NULL);
    if (r < 0)
        return r;
    /* After our own mapping, since this refuses all further writable ones. */
    if (fcntl(fd, F_ADD_SEALS, seals_of(options->role)) < 0)
        return -errno;

    memory.header->magic = MEMORY_MAGIC;
    memory.header->version = MEMORY_VERSION;
    memory.header->role = (uint16_t)options->role;
    memory.header->ring_size = options->ring_size;
    memory.header->ring_offset = ring_offset;
    memory.header->inline_max = options->inline_max;
    memory.header->wake_backend = options->wake_backend;
    memory.header->spin_usec = options->spin_usec;
    memory.fd = TAKE_FD(fd);
    *ret = memory;
    memory = (struct memory)MEMORY_NULL;
    return 0;
}

static bool header_valid(const struct memory_header *header, enum memory_role role, size_t size)
{
    return header->magic == MEMORY_MAGIC && header->version == MEMORY_VERSION &&
           header->role == role && header->ring_offset == ring_offset_of(role) &&
           header->ring_size == size - ring_offset_of(role) &&
           sizes_valid(header->ring_size, header->inline_max, header->wake_backend);
}

/* Returns 0 and the size, if the file is sealed as it must be, or -errno. */
static int check_file(int fd, enum memory_role role, size_t *ret_size)
{
    struct stat status;
    const int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0)
        return errno == EINVAL ? -EPROTO : -errno;
    if ((seals & SEALS_LOOKED_AT) != seals_of(role))
        return -EPROTO;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (status.st_size < (off_t)ring_offset_of(role) + (off_t)MEMORY_RING_SIZE_MIN ||
        status.st_size > (off_t)ring_offset_of(role) + (off_t)MEMORY_RING_SIZE_MAX)
        return -EPROTO;
    *ret_size = (size_t)status.st_size;
    return 0;
}

int memory_open(struct memory *ret, int fd, enum memory_role role)
{
    _cleanup_(memory_deinit)
    struct memory memory = MEMORY_NULL;
    size_t size;
    int r = check_file(fd, role, &size);

    if (r < 0)
        return r;
    r = map(&memory, fd, role, size, role == MEMORY_INBOX ? PROT_READ : PROT_READ | PROT_WRITE,
            NULL);
    if (r < 0)
        return r;
    if (!header_valid(memory.header, role, memory.size))
        return -EPROTO;
    memory.fd = fd;
    *ret = memory;
    memory = (struct memory)MEMORY_NULL;
    return 0;
}

static int read_all(int fd, void *data, size_t size, size_t offset)
{
    const ssize_t n = pread(fd, data, size, (off_t)offset);

    return n < 0 ? -errno : (size_t)n < size ? -EPROTO : 0;
}

/* Copies the records between two cursors, which may wrap around. */
static int copy_records(struct memory *to, int from, uint32_t begin, uint32_t end)
{
    const size_t ring = ring_offset_of(MEMORY_INBOX);
    const uint32_t position = begin & (to->ring_size - 1), size = end - begin;
    const uint32_t to_end = to->ring_size - position, first = size < to_end ? size : to_end;
    int r = first > 0 ? read_all(from, to->ring + position, first, ring + position) : 0;

    return r == 0 && size > first ? read_all(from, to->ring, size - first, ring) : r;
}

/* The supervisor that wrote the inbox is gone, so its header no longer changes. */
static int copy_inbox(struct memory *to, int fd, const struct memory_header *from)
{
    const uint32_t tail = atomic_load_explicit(&from->tail, memory_order_relaxed);
    const uint32_t gate = atomic_load_explicit(&from->gate, memory_order_relaxed);
    const uint64_t hands = atomic_load_explicit(&from->hands, memory_order_relaxed);
    int r;

    if (tail - gate > from->ring_size)
        return -EPROTO;
    r = copy_records(to, fd, gate, tail);
    if (r < 0)
        return r;
    for (uint64_t left = hands; left != 0; left &= left - 1) {
        struct memory_job *job = &to->header->jobs[__builtin_ctzll(left)];

        r = read_all(fd, job, sizeof(*job), (size_t)((uint8_t *)job - (uint8_t *)to->header));
        if (r < 0)
            return r;
    }
    atomic_store_explicit(&to->header->hands, hands, memory_order_relaxed);
    to->header->epoch = from->epoch + 1;
    to->header->kept = from->kept;
    atomic_store_explicit(&to->header->gate, gate, memory_order_relaxed);
    atomic_store_explicit(&to->header->tail, tail, memory_order_relaxed);
    return 0;
}

/* Reads the header of a former inbox, without its jobs. */
static int read_former(int fd, struct memory_header *ret)
{
    size_t size;
    int r = check_file(fd, MEMORY_INBOX, &size);

    if (r == 0)
        r = read_all(fd, ret, offsetof(struct memory_header, jobs), 0);
    if (r < 0)
        return r;
    return header_valid(ret, MEMORY_INBOX, size) ? 0 : -EPROTO;
}

/* The former inbox is read, not mapped: it is needed once, and there may be thousands. Only entries
 * of jobs that are in use are read. */
int memory_renew(struct memory *ret, int fd)
{
    _cleanup_(memory_deinit)
    struct memory next = MEMORY_NULL;
    struct memory_header former;
    int r = read_former(fd, &former);

    if (r < 0)
        return r;
    r = memory_create(&next, &(struct memory_options){
                                 .role = MEMORY_INBOX,
                                 .ring_size = former.ring_size,
                                 .inline_max = former.inline_max,
                                 .wake_backend = former.wake_backend,
                                 .spin_usec = former.spin_usec,
                             });
    if (r == 0)
        r = copy_inbox(&next, fd, &former);
    if (r < 0)
        return r;
    *ret = next;
    next = (struct memory)MEMORY_NULL;
    return 0;
}

int memory_scan_jobs(int fd, memory_job_fn fn, void *userdata)
{
    struct memory_header former;
    struct memory_job job;
    uint32_t tail;
    int r = read_former(fd, &former);

    if (r < 0)
        return r;
    tail = atomic_load_explicit(&former.tail, memory_order_relaxed);
    for (uint64_t left = former.hands; left != 0; left &= left - 1) {
        r = read_all(fd, &job, sizeof(job),
                     offsetof(struct memory_header, jobs) +
                         (size_t)__builtin_ctzll(left) * sizeof(job));
        if (r < 0)
            return r;
        if (memory_job_is_published(&job, tail, former.ring_size))
            fn(userdata, &job);
    }
    return 0;
}

int memory_replace(struct memory *inbox, int fd)
{
    _cleanup_(memory_deinit)
    struct memory next = MEMORY_NULL;
    int r = memory_open(&next, fd, MEMORY_INBOX);

    if (r < 0)
        return r;
    next.fd = -1; /* the caller's */
    if (next.size != inbox->size)
        return -EPROTO;
    return map(inbox, fd, MEMORY_INBOX, inbox->size, PROT_READ, inbox->header);
}

void memory_close_fd(struct memory *memory)
{
    memory->fd = close_fd(memory->fd);
}

void memory_deinit(struct memory *memory)
{
    if (memory->header)
        (void)munmap(memory->header, memory->size);
    memory_close_fd(memory);
    *memory = (struct memory)MEMORY_NULL;
}

/* The page may be read while it is written, so both sides access it in relaxed atomic words, which
 * are partners; the sequence shows whether the words belong together. */
static void state_store(uint8_t *page, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t word = 0;

        memcpy(&word, data + i, size - i < sizeof(word) ? size - i : sizeof(word));
        atomic_store_explicit((_Atomic uint64_t *)(void *)(page + i), word, memory_order_relaxed);
    }
}

static void state_load(const uint8_t *page, uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        const _Atomic uint64_t *from = (const _Atomic uint64_t *)(const void *)(page + i);
        uint64_t word = atomic_load_explicit(from, memory_order_relaxed);

        memcpy(data + i, &word, size - i < sizeof(word) ? size - i : sizeof(word));
    }
}

int memory_state_write(struct memory *outbox, const void *data, size_t size)
{
    struct memory_header *header = outbox->header;
    uint32_t odd;

    if (size > MEMORY_STATE_MAX)
        return -EMSGSIZE;
    /* A predecessor may have died during a write and left the sequence odd. */
    odd = atomic_load_explicit(&header->state_sequence, memory_order_relaxed) | 1;
    atomic_store_explicit(&header->state_sequence, odd, memory_order_relaxed);
    /* Partner: the fence in state_try(). No reader sees new bytes with the old even number. */
    wake_fence();
    FAULT_POINT("memory.state.odd");
    atomic_store_explicit(&header->state_size, (uint32_t)size, memory_order_relaxed);
    state_store(outbox->state, data, size);
    FAULT_POINT("memory.state.before-even");
    /* Partner: the acquire load in state_try(). 0 means "never written": skip it when wrapping. */
    odd += odd + 1 == 0 ? 2 : 0;
    atomic_store_explicit(&header->state_sequence, odd + 1, memory_order_release);
    return 0;
}

/* One try. Returns whether the copied bytes come from a single write. */
static bool state_try(const struct memory *outbox, void *data, size_t *ret_size)
{
    const struct memory_header *header = outbox->header;
    uint32_t before, size;

    /* Partner: the release store in memory_state_write(). */
    before = atomic_load_explicit(&header->state_sequence, memory_order_acquire);
    size = before == 0 ? 0 : atomic_load_explicit(&header->state_size, memory_order_relaxed);
    *ret_size = size < MEMORY_STATE_MAX ? size : MEMORY_STATE_MAX;
    state_load(outbox->state, data, *ret_size);
    /* Partner: the fence in memory_state_write(). The copy is over before the sequence is read
     * again. */
    wake_fence();
    return (before & 1) == 0 &&
           atomic_load_explicit(&header->state_sequence, memory_order_relaxed) == before;
}

int memory_state_read(const struct memory *outbox, void *data, size_t *ret_size)
{
    for (unsigned i = 0; i < STATE_TRIES; i++)
        if (state_try(outbox, data, ret_size))
            return (int)*ret_size;
    return -EAGAIN;
}
