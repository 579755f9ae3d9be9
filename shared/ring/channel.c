/* SPDX-License-Identifier: MIT */
#include "shared/ring/channel.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static void wake_at_once(struct channel *channel, const _Atomic uint32_t *word)
{
    const uint64_t begin = spin_wake_begin(&channel->spin);

    if (word && channel->backend == WAKE_FUTEX)
        (void)wake_futex_wake(word);
    else if (channel->self_fd >= 0)
        wake_eventfd_wake(channel->wake_fd);
    else
        wake_socket(channel->wake_fd);
    spin_wake_end(&channel->spin, begin);
}

/* Wakes the peer, which sleeps like this because it had nothing to read. */
static void wake_peer(struct channel *channel, uint32_t sleeping)
{
    _Atomic uint32_t *bell = &channel->words->bell;

    /* Partner: the load in prepare_sleep(). It changes the word, so a wake-up between the sleeper's
     * last look and its system call is not lost. */
    (void)atomic_fetch_add_explicit(bell, 1, memory_order_release);
    channel->wake(channel, sleeping == MEMORY_SLEEPS_EVENTFD ? NULL : bell);
}

/* Finds the words, and both rings, in the memories. */
static int init_rings(struct channel *channel, bool supervisor)
{
    struct memory_header *outbox = supervisor ? channel->theirs.header : channel->mine.header;
    int r;

    channel->words = supervisor ? &outbox->supervisor : &outbox->worker;
    channel->their_words = supervisor ? &outbox->worker : &outbox->supervisor;
    /* A predecessor may have died with its flags raised. Partners: the loads in publish and
     * release. */
    atomic_store_explicit(&channel->words->sleeping, 0, memory_order_relaxed);
    atomic_store_explicit(&channel->words->blocked, 0, memory_order_relaxed);

    r = ring_producer_init(&channel->out, channel->mine.ring, channel->mine.ring_size,
                           &channel->mine.header->tail, &channel->their_words->head);
    if (r < 0)
        return r;
    return ring_consumer_init(&channel->in, channel->theirs.ring, channel->theirs.ring_size,
                              &channel->words->head, &channel->theirs.header->tail);
}

static int new_eventfd(int flags)
{
    int fd, r = fault_inject("eventfd");

    if (r < 0)
        return r;
    fd = eventfd(0, EFD_CLOEXEC | flags);
    return fd < 0 ? -errno : fd;
}

/* Makes the socket pair by which the peer can be woken with any back end. The peer can send nothing
 * back. It also cannot disconnect its end, as it could a datagram socket, to let other processes
 * send descriptors to it: the process that closes the socket last would have to close them. */
static int create_socket(struct channel *channel)
{
    int ends[2], r = fault_inject("eventfd");

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return -errno;
    channel->wake_fd = ends[0];
    channel->peer_fd = ends[1];
    return shutdown(ends[0], SHUT_RD) < 0 ? -errno : 0;
}

static int create_wake_ups(struct channel *channel)
{
    int r = create_socket(channel);

    if (r < 0 || channel->backend == WAKE_FUTEX)
        return r;
    /* Blocking, since otherwise the read by io_uring would not wait. */
    channel->wait_fd = new_eventfd(0);
    return channel->wait_fd < 0 ? channel->wait_fd : 0;
}

int channel_create(struct channel *ret, const struct channel_options *options,
                   struct channel_fds *ret_fds)
{
    _cleanup_(channel_deinit)
    struct channel channel = CHANNEL_NULL;
    struct memory_options memory = {
        .role = MEMORY_INBOX,
        .ring_size = options->ring_size,
        .inline_max = options->inline_max,
        .wake_backend = options->backend,
        .spin_usec = options->spin_usec,
    };
    int r;

    channel.backend = options->backend;
    channel.wake = wake_at_once;
    r = memory_create(&channel.mine, &memory);
    if (r < 0)
        return r;
    memory.role = MEMORY_OUTBOX;
    r = memory_create(&channel.theirs, &memory);
    if (r < 0)
        return r;
    r = create_wake_ups(&channel);
    if (r < 0)
        return r;
    r = init_rings(&channel, true);
    if (r < 0)
        return r;

    *ret_fds = (struct channel_fds){
        .inbox = channel.mine.fd,
        .outbox = channel.theirs.fd,
        .wait_fd = channel.peer_fd,
        .wake_fd = channel.wait_fd,
    };
    *ret = channel;
    channel = (struct channel)CHANNEL_NULL;
    return 0;
}

int channel_adopt(struct channel *ret, const struct channel_fds *fds, enum wake_backend backend)
{
    _cleanup_(channel_deinit)
    struct channel channel = CHANNEL_NULL;
    int r = memory_open(&channel.theirs, fds->outbox, MEMORY_OUTBOX);

    if (r < 0)
        return r;
    channel.theirs.fd = -1; /* the caller's, until nothing can fail */
    r = memory_renew(&channel.mine, fds->inbox);
    if (r < 0)
        return r;
    channel.backend = (enum wake_backend)channel.mine.header->wake_backend;
    channel.wake = wake_at_once;
    if (channel.backend != backend || fds->wait_fd < 0 ||
        (backend == WAKE_EVENTFD && fds->wake_fd < 0))
        return -EPROTO;
    r = init_rings(&channel, true);
    if (r < 0)
        return r;
    channel.mine.header->resumed = channel.in.head;
    channel.theirs.fd = fds->outbox;
    channel.wake_fd = fds->wait_fd;
    channel.wait_fd = fds->wake_fd;
    (void)close_fd(fds->inbox);
    *ret = channel;
    channel = (struct channel)CHANNEL_NULL;
    return 0;
}

void channel_set_kept(struct channel *channel, uint32_t kept)
{
    struct memory_header *header = channel->mine.header;
    const uint32_t former = header->epoch - 1;

    /* Partner: the store in channel_follow(). A peer that skips an inbox loses state that the
     * supervisor of that inbox had not kept. */
    if (former == 0 ||
        atomic_load_explicit(&channel->their_words->epoch, memory_order_relaxed) == former)
        header->kept = kept;
    else
        header->kept &= kept;
}

void channel_move(struct channel *channel)
{
    /* Partner: the load in channel_is_moved(). Release: the descriptor is in the socket. */
    atomic_store_explicit(&channel->words->epoch, channel->mine.header->epoch,
                          memory_order_release);
    wake_fence();
}

void channel_announce(struct channel *channel)
{
    wake_peer(channel, atomic_load_explicit(&channel->their_words->sleeping, memory_order_relaxed));
    /* The predecessor may have died between a change of this word and the wake-up. */
    channel->wake(channel, &channel->words->head);
}

int channel_follow(struct channel *channel, int fd)
{
    const struct memory_header *header = channel->theirs.header;
    int r = memory_replace(&channel->theirs, fd);

    if (r < 0)
        return r;
    /* Partner: the load in channel_set_kept(). */
    atomic_store_explicit(&channel->words->epoch, header->epoch, memory_order_relaxed);
    return atomic_load_explicit(&header->tail, memory_order_relaxed) - channel->in.head >
                   channel->in.size
               ? -EPROTO
               : 0;
}

void channel_close_fds(struct channel *channel)
{
    memory_close_fd(&channel->mine);
    memory_close_fd(&channel->theirs);
    channel->peer_fd = close_fd(channel->peer_fd);
}

/* Leaves the descriptors, which are the caller's until channel_open() succeeds. */
static void open_failed(struct channel *channel)
{
    channel->mine.fd = channel->theirs.fd = -1;
    channel->wake_fd = channel->wait_fd = -1;
    channel_deinit(channel);
}

int channel_open(struct channel *ret, const struct channel_fds *fds)
{
    _cleanup_(open_failed)
    struct channel channel = CHANNEL_NULL;
    int r;

    r = memory_open(&channel.mine, fds->outbox, MEMORY_OUTBOX);
    if (r < 0)
        return r;
    r = memory_open(&channel.theirs, fds->inbox, MEMORY_INBOX);
    if (r < 0)
        return r;
    if (channel.mine.header->wake_backend != channel.theirs.header->wake_backend)
        return -EPROTO;
    channel.backend = (enum wake_backend)channel.theirs.header->wake_backend;
    channel.wake = wake_at_once;
    spin_init(&channel.spin, channel.theirs.header->spin_usec);
    if (fds->wait_fd < 0 || (channel.backend == WAKE_EVENTFD && fds->wake_fd < 0))
        return -EPROTO;
    channel.wait_fd = fds->wait_fd;
    channel.wake_fd = fds->wake_fd;
    channel.self_fd = new_eventfd(EFD_NONBLOCK);
    if (channel.self_fd < 0)
        return channel.self_fd;
    r = init_rings(&channel, false);
    if (r < 0)
        return r;

    channel.announced = &channel.their_words->epoch;
    *ret = channel;
    channel = (struct channel)CHANNEL_NULL;
    return 0;
}

void channel_deinit(struct channel *channel)
{
    memory_deinit(&channel->mine);
    memory_deinit(&channel->theirs);
    (void)close_fd(channel->wake_fd);
    (void)close_fd(channel->wait_fd);
    (void)close_fd(channel->peer_fd);
    (void)close_fd(channel->self_fd);
    *channel = (struct channel)CHANNEL_NULL;
}

bool channel_is_moved(const struct channel *channel)
{
    /* Partner: the store in channel_announce(). */
    return channel->announced && atomic_load_explicit(channel->announced, memory_order_acquire) !=
                                     channel->theirs.header->epoch;
}

void channel_publish(struct channel *channel)
{
    uint32_t sleeping;

    if (!ring_publish(&channel->out))
        return;
    /* Partner: the fence in channel_prepare_sleep(): we see the flag, or the sleeper sees the tail.
     */
    wake_fence();
    FAULT_POINT("channel.publish.before-wake");
    sleeping = atomic_load_explicit(&channel->their_words->sleeping, memory_order_relaxed);
    if (sleeping != MEMORY_AWAKE)
        wake_peer(channel, sleeping);
    FAULT_POINT("channel.publish.end");
}

void channel_release(struct channel *channel)
{
    if (!ring_release(&channel->in))
        return;
    /* Partner: the fence in channel_prepare_block(): we see the flag, or the sleeper sees the head.
     */
    wake_fence();
    FAULT_POINT("channel.release.before-wake");
    if (atomic_load_explicit(&channel->their_words->blocked, memory_order_relaxed) != 0)
        channel->wake(channel, &channel->words->head);
    FAULT_POINT("channel.release.end");
}

static bool prepare_sleep(struct channel *channel, enum memory_sleep how, uint32_t *ret_expected)
{
    /* Partner: wake_peer(). Loaded first: a peer that rings later changes it.
     */
    *ret_expected = atomic_load_explicit(&channel->their_words->bell, memory_order_acquire);
    /* Partners: the loads in channel_publish() and channel_wake_self(). */
    atomic_store_explicit(&channel->words->sleeping, how, memory_order_relaxed);
    wake_fence();
    FAULT_POINT("channel.sleep.flag-up");
    if (ring_pending(&channel->in) || channel_is_moved(channel)) {
        channel_end_sleep(channel);
        return false;
    }
    return true;
}

bool channel_prepare_sleep(struct channel *channel, uint32_t *ret_expected)
{
    return prepare_sleep(channel, MEMORY_SLEEPS, ret_expected);
}

/* Returns whether another thread ends this wait. Partner: the store in channel_wake_self(). */
static bool take_wake(struct channel *channel)
{
    return channel->wakeable && atomic_load_explicit(&channel->woken, memory_order_relaxed) &&
           atomic_exchange_explicit(&channel->woken, false, memory_order_acquire);
}

bool channel_arm(struct channel *channel, bool *ret_woken)
{
    uint32_t ignored;

    *ret_woken = false;
    wake_empty(channel->self_fd);
    wake_empty(channel->wait_fd);
    if (!prepare_sleep(channel, MEMORY_SLEEPS_EVENTFD, &ignored))
        return false;
    *ret_woken = take_wake(channel);
    if (*ret_woken)
        channel_end_sleep(channel);
    return !*ret_woken;
}

void channel_ring_self(struct channel *channel)
{
    wake_eventfd_wake(channel->self_fd);
}

void channel_wake_self(struct channel *channel)
{
    /* Partners: take_wake(), and the fence in prepare_sleep(): it sees this, or we see the flag. */
    atomic_store_explicit(&channel->woken, true, memory_order_release);
    wake_fence();
    for (;;) {
        uint32_t sleeping = atomic_load_explicit(&channel->words->sleeping, memory_order_relaxed);

        if (sleeping == MEMORY_AWAKE)
            return;
        if (sleeping == MEMORY_SLEEPS_EVENTFD || channel->backend == WAKE_EVENTFD) {
            channel_ring_self(channel);
            return;
        }
        if (wake_futex_wake(&channel->their_words->bell) > 0)
            return;
        /* The waiting thread is just before or after its system call. */
        (void)sched_yield();
    }
}

void channel_end_sleep(struct channel *channel)
{
    atomic_store_explicit(&channel->words->sleeping, 0, memory_order_relaxed);
}

bool channel_prepare_block(struct channel *channel, uint32_t need, uint32_t *ret_expected)
{
    void *ignored;

    /* The peer can only consume what is published. */
    channel_publish(channel);
    /* Partner: the load in channel_release(). */
    atomic_store_explicit(&channel->words->blocked, 1, memory_order_relaxed);
    wake_fence();
    FAULT_POINT("channel.block.flag-up");
    if (ring_reserve(&channel->out, need, &ignored) != RING_E_FULL) {
        channel_end_block(channel);
        return false;
    }
    *ret_expected = channel->out.head; /* The value just loaded, with too little room. */
    return true;
}

void channel_end_block(struct channel *channel)
{
    atomic_store_explicit(&channel->words->blocked, 0, memory_order_relaxed);
}

/* One sleep, on the futex or the eventfd. */
static int sleep_on(struct channel *channel, const _Atomic uint32_t *word, uint32_t expected,
                    usec_t deadline)
{
    usec_t timeout = USEC_INFINITY;

    FAULT_POINT("channel.before-sleep");
    if (deadline != USEC_INFINITY)
        timeout = usec_sub(deadline, clock_now());
    if (channel->backend == WAKE_FUTEX)
        return wake_futex_wait(word, expected, timeout);
    return wake_eventfd_wait(channel->wait_fd, channel->self_fd, timeout);
}

static usec_t deadline_after(usec_t timeout)
{
    return timeout == USEC_INFINITY ? USEC_INFINITY : usec_add(clock_now(), timeout);
}

bool channel_spin(struct channel *channel)
{
    bool found = ring_pending(&channel->in);

    if (found || !spin_begin(&channel->spin, clock_now()))
        return found;
    while (!(found = ring_pending(&channel->in)) && spin_more(&channel->spin, clock_now()))
        ;
    spin_end(&channel->spin, clock_now(), found);
    return found;
}

int channel_wait_control(struct channel *channel, uint32_t control, usec_t timeout)
{
    uint32_t expected;
    usec_t deadline;
    int r;

    if (channel_spin(channel))
        return 0;
    deadline = deadline_after(timeout);
    if (!channel_prepare_sleep(channel, &expected))
        return 0;
    /* Partner: the supervisor's store, after which it rings the bell whether we sleep or not. */
    if (atomic_load_explicit(&channel->their_words->control, memory_order_relaxed) != control)
        r = 0;
    else
        r = take_wake(channel) ? -EINTR
                               : sleep_on(channel, &channel->their_words->bell, expected, deadline);
    channel_end_sleep(channel);
    return ring_pending(&channel->in) ? 0 : r;
}

int channel_wait(struct channel *channel, usec_t timeout)
{
    return channel_wait_control(
        channel, atomic_load_explicit(&channel->their_words->control, memory_order_relaxed),
        timeout);
}

int channel_wait_space(struct channel *channel, uint32_t need, usec_t timeout)
{
    usec_t deadline = deadline_after(timeout);

    /* Even if it fits by now. */
    channel_publish(channel);
    for (;;) {
        uint32_t expected;
        void *ignored;
        int r = ring_reserve(&channel->out, need, &ignored);

        if (r != RING_E_FULL)
            return r;
        if (!channel_prepare_block(channel, need, &expected))
            continue;
        r = sleep_on(channel, &channel->their_words->head, expected, deadline);
        channel_end_block(channel);
        if (r < 0)
            return r;
    }
}
