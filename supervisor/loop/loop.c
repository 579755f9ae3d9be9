/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/loop.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "supervisor/loop/loop-private.h"
#include "supervisor/loop/toll.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

static const char *const KINDS[] = {[LOOP_IO_URING] = "io_uring", [LOOP_EPOLL] = "epoll"};

const char *loop_kind_to_string(enum loop_kind kind)
{
    return KINDS[kind];
}

int loop_kind_from_string(const char *text, enum loop_kind *ret)
{
    for (enum loop_kind kind = LOOP_IO_URING; kind <= LOOP_EPOLL; kind++) {
        if (strcmp(text, KINDS[kind]) == 0) {
            *ret = kind;
            return 0;
        }
    }
    return -EINVAL;
}

static enum loop_kind wanted_kind(const struct loop_options *options)
{
    enum loop_kind kind = options->kind;
    const char *text = kind == LOOP_ANY ? getenv("TROUPE_LOOP") : NULL;
    if (text)
        (void)loop_kind_from_string(text, &kind);
    return kind;
}

static int init_ring(struct loop *loop, const struct loop_options *options, const char **ret_reason)
{
    int r = loop_ring_init(&loop->ring, options->entries > 0 ? options->entries : 1024,
                           options->force_eventfd, ret_reason);
    loop->backend = &loop_backend_ring;
    if (r == 0)
        loop->wake = loop->ring.futex ? WAKE_FUTEX : WAKE_EVENTFD;
    return r;
}

static int init_epoll(struct loop *loop)
{
    loop->epoll = (struct loop_epoll){0};
    loop->backend = &loop_backend_epoll;
    loop->wake = WAKE_EVENTFD;
    return loop_epoll_init(&loop->epoll);
}

static int init_backend(struct loop *loop, const struct loop_options *options,
                        const char **ret_reason)
{
    enum loop_kind kind = wanted_kind(options);
    *ret_reason = NULL;
    if (kind == LOOP_EPOLL)
        return init_epoll(loop);
    int r = init_ring(loop, options, ret_reason);
    return r == LOOP_E_UNAVAILABLE && kind == LOOP_ANY ? init_epoll(loop) : r;
}

int loop_new(struct loop **ret, const struct loop_options *options, const char **ret_reason)
{
    struct loop *loop = fault_inject("alloc") < 0 ? NULL : calloc(1, sizeof(*loop));
    if (!loop)
        return -ENOMEM;
    int r = init_backend(loop, options, ret_reason);
    if (r != 0) {
        free(loop);
        return r;
    }
    struct list *lists[] = {&loop->free,          &loop->pending, &loop->updates,  &loop->cancels,
                            &loop->fired,         &loop->hot,     &loop->hot_pass, &loop->deferred,
                            &loop->deferred_pass, &loop->late};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        list_init(lists[i]);
    loop->now = clock_now();
    *ret = loop;
    return 0;
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    loop->backend->deinit(loop);
    loop_release_leftovers(loop);
    loop_free_slots(loop);
    free(loop->leftovers);
    free(loop);
}

enum loop_kind loop_kind(const struct loop *loop)
{
    return loop->backend == &loop_backend_ring ? LOOP_IO_URING : LOOP_EPOLL;
}

enum wake_backend loop_wake_backend(const struct loop *loop)
{
    return loop->wake;
}

void loop_use_eventfds(struct loop *loop)
{
    loop->wake = WAKE_EVENTFD;
}

usec_t loop_now(const struct loop *loop)
{
    return loop->now;
}

void loop_update_now(struct loop *loop)
{
    loop->now = clock_now();
}

usec_t loop_realtime(struct loop *loop)
{
    if (loop->realtime == 0)
        loop->realtime = clock_realtime();
    return loop->realtime;
}

struct timer_queue *loop_timers(struct loop *loop)
{
    return &loop->timers;
}

void loop_set_spin(struct loop *loop, usec_t limit)
{
    loop->spinning = false;
    spin_init(&loop->spin, limit < SPIN_USEC_MAX ? (uint32_t)limit : SPIN_USEC_MAX);
}

void loop_stay_awake(struct loop *loop, usec_t until)
{
    if (loop->spin.limit > 0)
        loop->awake_until = until;
}

void loop_stop(struct loop *loop)
{
    loop->stop = true;
}

void loop_deferred_init(struct loop_deferred *deferred, void (*fn)(struct loop_deferred *))
{
    list_init(&deferred->link);
    deferred->late = false;
    deferred->fn = fn;
}

void loop_defer(struct loop *loop, struct loop_deferred *deferred)
{
    if (list_linked(&deferred->link) && !deferred->late)
        return;
    list_unlink(&deferred->link);
    list_push_back(&loop->deferred, &deferred->link);
    deferred->late = false;
}

void loop_defer_late(struct loop *loop, struct loop_deferred *deferred)
{
    if (list_linked(&deferred->link))
        return;
    if (list_empty(&loop->late))
        loop->late_since = loop->now;
    list_push_back(&loop->late, &deferred->link);
    deferred->late = true;
}

void loop_undefer(struct loop_deferred *deferred)
{
    list_unlink(&deferred->link);
}

/* ---- leftovers ---- */

/* Descriptors to close and memory to unmap, which the ring may still use. */

void loop_set_close(struct loop *loop, void (*fn)(int fd, uint64_t owner, bool elsewhere))
{
    loop->close = fn;
}

static void release(const struct loop *loop, const struct loop_leftover *leftover)
{
    if (leftover->start)
        (void)munmap(leftover->start, leftover->size);
    else if (loop->close)
        loop->close(leftover->fd, leftover->owner, leftover->elsewhere);
    else
        (void)close_fd(leftover->fd);
}

static void keep(struct loop *loop, const struct loop_leftover *leftover)
{
    if (loop->n_leftovers == loop->leftovers_allocated) {
        unsigned n = loop->leftovers_allocated > 0 ? 2 * loop->leftovers_allocated : 64;
        struct loop_leftover *leftovers = reallocarray(loop->leftovers, n, sizeof(*leftovers));
        if (!leftovers)
            return release(loop, leftover);
        loop->leftovers = leftovers;
        loop->leftovers_allocated = n;
    }
    if (loop->n_leftovers == 0)
        loop->leftovers_since = loop->now;
    loop->leftovers[loop->n_leftovers++] = *leftover;
}

void loop_close(struct loop *loop, int fd)
{
    loop_close_owned(loop, fd, 0);
}

void loop_close_owned(struct loop *loop, int fd, uint64_t owner)
{
    const struct toll toll = toll_begin(loop->now);

    if (fd < 0)
        return;
    /* The other end sees this immediately, and can send nothing more. */
    (void)shutdown(fd, SHUT_RDWR);
    keep(loop, &(struct loop_leftover){.fd = fd,
                                       .owner = owner,
                                       .elsewhere = toll_end(toll, loop->now, owner) != TOLL_FINE});
}

void loop_close_elsewhere(struct loop *loop, int fd, uint64_t owner)
{
    if (fd >= 0)
        keep(loop, &(struct loop_leftover){.fd = fd, .owner = owner, .elsewhere = true});
}

void loop_unmap(struct loop *loop, void *start, size_t size)
{
    if (start)
        keep(loop, &(struct loop_leftover){.start = start, .size = size});
}

void loop_release_leftovers(struct loop *loop)
{
    for (unsigned i = 0; i < loop->n_leftovers; i++)
        release(loop, &loop->leftovers[i]);
    loop->n_leftovers = 0;
}
